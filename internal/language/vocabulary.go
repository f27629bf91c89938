package language

import (
	"maps"
	"slices"
	"strings"
)

// vocabulary holds common words of each language: those that hold sentences together, and those that people say to an
// agent. A word may stand in several lists; then it speaks for all of them. Words that English requests are full of in another
// sense are in no other list: pod, per, CI, visa, comment.
var vocabulary = map[string]string{
	"en": `the a an of to in for and or is are was were be been it its this that these those with from on at by as not no yes do does did
		don't doesn't can could would should will please thanks thank you your i me my we our us they them he she his her what which who why
		how when where there here all any some more than then if but only just also about into out up down over again now still show
		list give get find check tell look delete remove restart stop start run send write read open close create make update change move
		copy need want let keep put set add turn take have has had hey hi hello ok okay go ahead right away today tomorrow yesterday`,
	"de": `der die das den dem des ein eine einen einem einer und oder ist sind war waren nicht kein keine ja nein bitte danke ich du er sie es
		wir ihr mir mich dir dich uns mein meine dein deine was welche welcher welches wer warum wieso wie wann wo wohin auf aus bei mit nach von vom zu zum
		zur für über unter vor im in an am als auch nur noch schon mal dann wenn dass weil aber doch lösche lösch zeige zeig starte stoppe
		beende schick schicke sende schreib schreibe lies öffne erstelle ändere prüfe prüf kannst könntest würde muss soll soll's alle alles
		diese dieser dieses jetzt heute morgen gestern neu mach mache gib schau hol lass leere entferne setz setze erhöhe sag wieder gerade immer`,
	"fr": `le la les un une des du de et ou est sont était pas ne non oui s'il te plaît vous nous je tu il elle on mon ma mes ton ta tes votre vos
		notre nos ce cette ces que qui quoi quel quelle quels quelles pourquoi quand où dans sur sous avec sans pour par en au aux
		plus tout tous toute toutes mais donc aussi encore déjà ici supprime supprimer efface affiche montre montrez redémarre arrête
		lance envoie envoyer écris lis ouvre crée modifie vérifie peux pouvez merci maintenant aujourd'hui demain hier fais faites mets
		donne moi l'état d'abord j'ai c'est n'est qu'est y fermer fermez bien est-ce liste cherche regarde`,
	"es": `el la los las un una unos unas de del al y o es son era no sí por favor gracias yo tú usted nos me te se mi mis tu tus su sus que qué
		quién cuál cuáles por porque cómo cuándo dónde en con sin para sobre entre hasta desde más todo todos toda todas pero también ya
		aquí ahora hoy mañana ayer borra borrar elimina eliminar muestra muéstrame reinicia para detén arranca envía enviar escribe lee
		abre crea cambia comprueba puedes podrías quiero necesito hay está están haz pon dame dime busca cierra lo le mira sube baja vacía`,
	"it": `il lo la i gli le un uno una di del della dei delle dello degli e o è sono era non sì no favore grazie io tu lei noi mi ti si mio mia
		miei tuo tua suo sua che chi cosa quale quali perché come quando dove in nel nella con senza su sul sulla tra fra da dal dalla
		più tutto tutti tutta tutte ma anche già qui adesso ora oggi domani ieri cancella elimina mostra mostrami riavvia ferma avvia invia
		mandi manda scrivi leggi apri crea cambia controlla puoi potresti voglio serve c'è fai metti dammi dimmi cerca chiudi svuota`,
	"pt": `o a os as um uma uns umas de do da dos das e ou é são era não sim por favor obrigado obrigada eu tu você nós me te se meu minha
		meus teu tua seu sua que quem qual quais porque como quando onde em no na nos nas com sem para sobre entre até desde mais tudo todos
		toda todas mas também já aqui agora hoje amanhã ontem apaga apague elimina exclua mostra mostre reinicia reinicie pare inicie
		envia envie escreve leia abre abra crie muda verifica pode podes poderia quero preciso há está estão faz faça põe dá diga procura`,
	"nl": `de het een en of is zijn was waren niet geen ja nee graag alsjeblieft alstublieft bedankt ik jij je u hij zij ze wij we mij me mijn
		jouw uw ons onze wat welke wie waarom hoe wanneer waar op uit bij met naar van voor over onder in aan als ook maar nog al dan dat
		die deze dit alle alles nu vandaag morgen gisteren verwijder wis toon laat zien herstart stop start stuur schrijf lees open maak wijzig
		controleer kun kunt kan zou moet doe geef zet zoek sluit even eens weer om te er`,
	"pl": `i w na z ze do od za po o u nie tak proszę dziękuję ja ty on ona my wy oni mój moja moje twój jego jej nasz co kto jaki jaka jakie który
		która które dlaczego jak kiedy gdzie czy jest są był była było być się to ten ta te tego tej tym dla przez przy nad bez ale lub oraz także też już jeszcze
		teraz dziś jutro wczoraj usuń skasuj pokaż uruchom zatrzymaj wyślij napisz przeczytaj otwórz utwórz zmień sprawdź możesz chcę
		wszystkie wszystko zrób daj podaj znajdź zamknij ponownie mi`,
	"tr": `bir ve veya bu şu o ben sen biz siz onlar benim senin için ile gibi kadar daha çok en değil evet hayır lütfen teşekkürler ne neden
		niye nasıl zaman nerede hangi kim mı mi mu mü var yok tüm bütün hepsi ama da de ki sonra önce şimdi bugün yarın dün sil göster
		başlat durdur gönder yaz oku aç oluştur değiştir kontrol et yap ver bul kapat`,
	"sv": `och eller är var inte ej ja nej snälla tack jag du han hon vi ni de mig dig oss min mitt mina din ditt dina vad vilken vilka vem varför hur
		när på av för med till från om i ur den det en ett som att men också bara redan alla allt nu idag imorgon igår ta bort radera starta
		stoppa skicka skriv läs öppna skapa ändra kolla kan skulle måste gör ge hitta stäng igen`,
	"da": `og eller er var ikke ja nej venligst tak jeg du han hun vi mig dig os min mit mine din dit dine hvad hvilken hvilke hvem hvorfor
		hvordan hvornår hvor på af for med til fra om i ud den det en et som at men også kun allerede alle alt nu dag morgen går slet fjern vis
		genstart stop start send skriv læs åbn opret ændr tjek kan kunne skal gør giv find luk igen`,
	"no": `og eller er var ikke ja nei vennligst takk jeg du han hun vi meg deg oss min mitt mine din ditt dine hva hvilken hvilke hvem
		hvorfor hvordan når hvor på av for med til fra om i ut den det en et som at men også bare allerede alle alt nå dag morgen går slett fjern vis
		omstart stopp start send skriv les åpne opprett endre sjekk kan kunne skal gjør gi finn lukk igjen`,
	"fi": `ja tai on oli ovat ei kyllä kiitos minä sinä hän me te he minun sinun mikä mitkä kuka miksi miten milloin missä että kun jos mutta
		myös vain vielä kaikki nyt tänään huomenna eilen poista näytä käynnistä pysäytä lähetä kirjoita lue avaa luo muuta tarkista voitko
		haluan tee anna etsi sulje uudelleen ole hyvä tämä se ne`,
	"cs": `a i v na z ze do od za po o u ne ano prosím děkuji já ty on ona my vy můj moje tvůj jeho její náš co kdo jaký jaká který která které
		proč jak kdy kde je jsou byl byla být se to ten ta te tento tato pro při nad bez ale nebo také už ještě teď dnes zítra včera smaž
		odstraň ukaž spusť zastav pošli napiš přečti otevři vytvoř změň zkontroluj můžeš chci všechny všechno udělej dej najdi zavři`,
	"ro": `și sau este sunt era nu da vă rog te mulțumesc eu tu el ea noi voi mea meu ta tău sa lui ce cine care de de ce cum când unde în pe cu
		fără pentru la din mai tot toate toți dar și deja aici acum azi mâine ieri șterge arată repornește oprește pornește trimite scrie
		citește deschide creează schimbă verifică poți vreau fă dă caută închide un o al ale`,
	"hu": `a az egy és vagy van volt nem igen kérlek kérem köszönöm én te ő mi ti ők enyém mit mi melyik ki miért hogyan mikor hol hogy ha de is
		csak már még minden most ma holnap tegnap töröld mutasd indítsd állítsd küldd írd olvasd nyisd hozz létre változtasd ellenőrizd
		tudod szeretnék csináld adj keresd zárd újra`,
	"id": `yang dan atau adalah tidak ya tolong mohon terima kasih saya aku kamu anda dia kami kita mereka ini itu apa siapa mana mengapa kenapa
		bagaimana kapan dimana di ke dari untuk dengan pada oleh semua sudah belum akan bisa sekarang hari besok kemarin hapus tampilkan
		lihat mulai hentikan kirim tulis baca buka buat ubah periksa cek jalankan ulang berikan cari tutup`,
}

// marked are letters that English does not have, by language.
var marked = map[string]string{
	"de": "äöüß", "fr": "àâçèéêëîïôùûœ", "es": "áéíñóú", "it": "àèéìòù", "pt": "áâãàçéêíóôõú", "nl": "ëï", "pl": "ąćęłńóśźż", "tr": "çğışöü",
	"sv": "åäö", "da": "æøå", "no": "æøå", "fi": "äö", "cs": "áčďéěíňóřšťúůýž", "ro": "ăâîșțşţ", "hu": "áéíóöőúüű",
	"vi": "ạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹđăơư",
}

// endings of words are weak evidence, one point each.
var endings = map[string][]string{"en": {"ing", "ness", "ally", "ously"}, "de": {"ungen", "keit", "lich"}, "fr": {"ement", "euse"}, "es": {"ción", "mente"}}

// longestEnding: a word must be longer than its ending.
const longestEnding = 5

// borrowed are words that English writes with such letters.
var borrowed = strings.Fields("café cafés naïve résumé résumés cliché clichés façade touché déjà vu über jalapeño piñata señor entrée protégé fiancé fiancée")

// spoken gives the languages that have a word, sorted.
var spoken = func() map[string][]string {
	out := map[string][]string{}
	for _, tag := range slices.Sorted(maps.Keys(vocabulary)) {
		for word := range strings.FieldsSeq(vocabulary[tag]) {
			if !slices.Contains(out[word], tag) {
				out[word] = append(out[word], tag)
			}
		}
	}
	return out
}()
