package judge

import "strings"

// acts is a set of kinds of action.
type acts uint16

// The kinds of action that verbs of tools and of people stand for.
const (
	actRead acts = 1 << iota
	actSend
	actPay
	actDelete
	actCreate
	actUpdate
	actBuy
	actGrant
	actRun
	actLogin
)

// actWords are verbs, and nouns that stand for an action, by what they do. A word may stand in several lines.
var actWords = map[acts]string{
	actRead: `get show list read search find check view look what which see fetch retrieve query display tell give summarize summarise summary know
		browse visit open print download count lookup how when where who does any describe inspect review examine analyze analyse verify monitor track
		watch compare estimate detect recommend suggest explain report scan audit track lookup locate identify determine calculate compute convert predict
		translate evaluate measure status details info log logs history tail top diff grep cat`,
	actSend: `send email mail message msg tell notify forward dm reply text write inform share post announce tweet publish comment contact ask let
		call alert remind respond broadcast ping invite retweet submit reach`,
	actPay: `pay transfer wire send money bill deposit withdraw refund fund settle donate reimburse tip charge payment payout remit
		transaction invoice exchange`,
	actDelete: `delete remove cancel drop erase clear purge close revoke kill clean discard unsubscribe undo terminate destroy rid wipe uninstall unfollow
		trash empty archive detach deactivate disable stop evict drain prune truncate unregister dismiss reject decline flush`,
	actCreate: `create add make new schedule set setup register open start init generate book plan put insert save store record log write draft submit
		upload append build compose establish launch initiate provision file mkdir touch copy clone duplicate attach import enroll note`,
	actUpdate: `update change modify edit reschedule move rename set adjust replace correct fix increase decrease reset switch assign mark turn scale
		apply patch revise extend resize upgrade downgrade convert enable disable toggle configure configuration label annotate taint cordon uncordon
		rollout rollback restart sort merge resolve complete shift relocate migrate mv rotate sync put adapt`,
	actBuy: `buy order purchase book reserve reservation checkout trade sell place rent ticket cart subscribe get acquire hire ride`,
	actGrant: `invite grant give share allow authorize authorise permit access role add approve assign collaborator unlock public permission
		member admin bind enable whitelist`,
	actRun: `run execute exec start launch restart trigger deploy install call invoke use play drive lock apply bash shell command script process
		perform simulate benchmark build push redeploy`,
	actLogin: `login log sign authenticate password credential account verify register logout token secret key`,
}

// thingWords stand for an action by themselves, and for a thing beside a verb: the mail in send_mail.
var thingWords = wordSet(`email mail message reminder order transaction log logs file event note payment invoice booking reservation ticket cart comment post
	text record account credential password token secret key member role permission access collaborator admin bill deposit status info details history
	money call alert command script shell process plan book label task document page user`)

func isThing(t token) bool { return thingWords[t.text] || thingWords[strings.TrimSuffix(t.text, "s")] }

// particles end a verb of two words, which tools write as one: log me out, roll it back.
var particles = wordSet(`in out up down back off on over`)

// topics is a set of kinds of thing.
type topics uint8

// topicWords are words for one kind of thing: what is read of one of them may hold a value for another.
var topicWords = [...]string{
	`calendar event meeting appointment schedule agenda invitation attendee participant`,
	`inbox email mail message thread conversation chat channel recipient receiver sender reply to cc bcc`,
	`file document folder drive directory attachment path`,
	`user contact employee person people member profile customer client friend recipient receiver attendee participant invitee account to cc bcc`,
	`transaction payment balance statement bill invoice transfer refund recipient iban amount`,
	`order cart purchase product item booking reservation flight hotel`,
	`page webpage website web site url link article`,
}

// cue is what a word in a tool result can hint at.
type cue uint16

const (
	// cueUrges are words of somebody who tells a reader what to do.
	cueUrges cue = 1 << iota
	// cueAgent are words for a machine that reads.
	cueAgent
	// cueJoins stand before a further verb in the imperative.
	cueJoins
	// cueDoes are verbs by which a user hands over a task that stands elsewhere, cueTask are words for such a task.
	cueDoes
	cueTask
	// cueYes begins a turn that only agrees.
	cueYes
	// cueNot turns round what is said.
	cueNot
	cueStop
	// cueRefers points to something that stands elsewhere.
	cueRefers
	// cueRestricts is said of what may be done only on a condition, or not at all.
	cueRestricts
)

var cueWords = map[cue]string{
	cueUrges: `please must should instead ignore disregard important immediately urgent urgently kindly remember always ahead required need
		needs forget actually override overrides mandatory todo action ensure sure first before`,
	cueAgent: `instruction instructions system assistant agent ai gpt llm bot model task prompt developer whoever reader administrator`,
	cueJoins: `please and then also to kindly just now immediately`,
	cueDoes:  `follow do perform execute complete carry handle take act process resolve address fulfil fulfill implement pay work go finish proceed`,
	cueTask: `instruction instructions step steps task tasks action actions todo list request requests says say ask asks asked described specified
		mentioned listed accordingly according specifies message email file note bill ticket runbook issue checklist plan document page comment everything whatever`,
	cueYes: `yes yeah yep sure ok okay confirm confirmed correct proceed great perfect thanks right fine good absolutely definitely agreed`,
	cueNot: `not don dont never without no cannot cant won wont stop instead rather`,
	cueRefers: `that those it them one ones this these his her their my our latest last previous same mentioned found according based everyone
		others all there above earlier recent`,
	cueRestricts: `cannot only must unless never not if required eligible deny allowed forbidden prohibited before without always within`,
	cueStop: `a an the to of for in on at by with and or is are be it this that i me my you your can could would do from as so if not no
		into up all some have has will want use using make also then there their its was were been am he she they we us our his her them what
		when which who how s t re ll ve im please need just about any`,
}

// entry is what the lexicon knows about a word.
type entry struct {
	acts   acts
	cues   cue
	topics topics
}

// lexicon is by stem for acts and by the word itself for cues; a word that stands for both has both.
var lexicon = buildLexicon()

func buildLexicon() map[string]entry {
	all := make(map[string]entry, 1024)
	for act, words := range actWords {
		for w := range strings.FieldsSeq(words) {
			e := all[stem(w)]
			e.acts |= act
			all[stem(w)] = e
		}
	}
	for i, words := range topicWords {
		for w := range strings.FieldsSeq(words) {
			e := all[stem(w)]
			e.topics |= 1 << i
			all[stem(w)] = e
		}
	}
	// Cues go by the word as written; where that is not the stem, it needs a row of its own with the acts of its stem.
	for c, words := range cueWords {
		for w := range strings.FieldsSeq(words) {
			e, ok := all[w]
			if !ok {
				e.acts, e.topics = all[stem(w)].acts, all[stem(w)].topics
			}
			e.cues |= c
			all[w] = e
		}
	}
	return all
}

// meaning looks a token up.
func meaning(t token) entry {
	e, ok := lexicon[t.text]
	if !ok || e.acts == 0 && t.stem != t.text {
		e.acts |= lexicon[t.stem].acts
		e.topics |= lexicon[t.stem].topics
	}
	return e
}

func isStop(t token) bool { return lexicon[t.text].cues&cueStop != 0 }
