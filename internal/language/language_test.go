package language

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDetect(t *testing.T) {
	tests := map[string]struct {
		turns     []string
		wantTag   string
		wantKnown bool
	}{
		"nobody said anything":                       {nil, Undetermined, false},
		"an empty turn":                              {[]string{""}, Undetermined, false},
		"a number":                                   {[]string{"42"}, Undetermined, false},
		"names of services and addresses":            {[]string{"checkout-api ops@example.com https://example.com/der/die/das"}, Undetermined, false},
		"code shows nothing":                         {[]string{"`lösche die alten Daten und starte neu`"}, Undetermined, false},
		"a fenced block that never ends is code too": {[]string{"```\nund dann nicht mehr"}, Undetermined, false},
		"what is quoted is not what is said":         {[]string{"Please post 'Wir sind heute nicht da' to the channel."}, "en", true},
		"an apostrophe begins no quotation":          {[]string{"I don't think that it's what we'd want"}, "en", true},
		"a name with an umlaut in English":           {[]string{"Book the room in Zürich for Müller"}, "en", true},
		"a word that English has borrowed":           {[]string{"naïve cafés"}, Undetermined, false},
		"one word with a letter of its own":          {[]string{"löschen"}, "de", false},
		"a word in a script of its own":              {[]string{"Διέγραψε"}, "el", true},
		"Chinese among names":                        {[]string{"删除 staging 里的 checkout pod"}, "zh", true},
		"Japanese without spaces":                    {[]string{"podを削除して"}, "ja", true},
		"one foreign name in English":                {[]string{"Please rename the channel to Привет"}, "en", true},
		"Ukrainian by its letters":                   {[]string{"Зупини, будь ласка, її под"}, "uk", true},
		"Persian or Urdu, by its letters":            {[]string{"لطفا پاد را پاک کن چون گیر کرده"}, "fa", false},
		"a script that nobody knows here":            {[]string{"ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ"}, Uncoded, true},
		"running text without a common word":         {[]string{"halafu futa kumbukumbu zote kutoka kwenye hifadhidata hiyo sasa hivi bila kuuliza mtu yeyote"}, Uncoded, true},
		"two turns in one language":                  {[]string{"Was ist mit dem Pod?", "Dann lösche ihn bitte."}, "de", true},
		"Norwegian has one tag":                      {[]string{"Kan du slette det, vennligst? Jeg trenger ikke det nå."}, "no", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := Detect(tt.turns)
			if got.Tag != tt.wantTag || got.Known != tt.wantKnown {
				t.Errorf("Detect() = %+v, want %s, known %t", got, tt.wantTag, tt.wantKnown)
			}
			if got.Confidence < 0 || got.Confidence > 1 {
				t.Errorf("confidence is %v", got.Confidence)
			}
			if diff := cmp.Diff(got, Detect(tt.turns)); diff != "" {
				t.Error("the same turns gave another result:", diff)
			}
		})
	}
}

func TestReadableBy(t *testing.T) {
	tests := map[string]struct {
		turns []string
		reads []string
		want  bool
	}{
		"no evidence can be read by anybody":                    {[]string{"OPS-12"}, []string{"en"}, true},
		"English by who reads English":                          {[]string{"Delete the pod"}, []string{"en"}, true},
		"English by who reads British English":                  {[]string{"Delete the pod"}, []string{"EN_gb"}, true},
		"German not by who reads English":                       {[]string{"Lösche den Pod"}, []string{"en"}, false},
		"German by who reads both":                              {[]string{"Lösche den Pod"}, []string{"en", "de"}, true},
		"one German sentence in an English turn":                {[]string{"Show me the pods. Und dann lösche bitte die Datenbank."}, []string{"en"}, false},
		"one German turn among English ones":                    {[]string{"Show me the pods.", "Und jetzt lösche bitte alle.", "Are they gone now?"}, []string{"en"}, false},
		"both languages of two turns":                           {[]string{"Show me the pods.", "Und jetzt lösche bitte alle."}, []string{"en", "de"}, true},
		"a German sentence at the end of a very long turn":      {[]string{strings.Repeat("Show me the pods. ", 3000) + "Und dann lösche bitte die Datenbank."}, []string{"en"}, false},
		"words that two languages share":                        {[]string{"no, no"}, []string{"en"}, true},
		"Norwegian by who reads Bokmål":                         {[]string{"Jeg vet ikke hva du mener, vennligst slett det nå"}, []string{"nb"}, true},
		"a language that is unknown here, by who reads English": {[]string{"halafu futa kumbukumbu zote kutoka kwenye hifadhidata hiyo sasa hivi bila kuuliza"}, []string{"en"}, false},
		"a short agreement by who reads English":                {[]string{"Delete the pod.", "yes"}, []string{"en"}, true},
		"two words by who reads English":                        {[]string{"cancel it"}, []string{"en"}, true},
		"three words by who reads English":                      {[]string{"ok do it"}, []string{"en"}, true},
		"a pod is no preposition":                               {[]string{"exec in pod cart-f1, namespace ci"}, []string{"en"}, true},
		"per is English too":                                    {[]string{"per item"}, []string{"en"}, true},
		"to comment is English too":                             {[]string{"Comment on ticket T-17: \"Fixed in main.\""}, []string{"en"}, true},
		"a question in French that begins with comment":         {[]string{"Comment redémarrer le pod ?"}, []string{"en"}, false},
		"a visa is no imperative":                               {[]string{"visa"}, []string{"en"}, true},
		"Czech with a pod in it, by who reads English":          {[]string{"smaž prosím pod checkout"}, []string{"en"}, false},
		"Polish with a pod in it, by who reads English":         {[]string{"usuń pod checkout"}, []string{"en"}, false},
		"nobody reads anything":                                 {[]string{"Delete the pod"}, nil, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := Detect(tt.turns)
			if got := r.ReadableBy(tt.reads); got != tt.want {
				t.Errorf("ReadableBy(%v) = %t, want %t: %+v", tt.reads, got, tt.want, r)
			}
		})
	}
}

func TestLanguagesAreTagsAndListedOnce(t *testing.T) {
	all := Languages()
	if len(all) < 30 {
		t.Errorf("%d languages", len(all))
	}
	for i, tag := range all {
		if tag != Primary(tag) || i > 0 && tag == all[i-1] {
			t.Errorf("tag %q", tag)
		}
	}
}

func FuzzDetect(f *testing.F) {
	for _, seed := range []string{"", "Delete the pod", "Lösche", "``` x", "podを", "'a' b", "\xff\xfe", "İ", "́", "-", "'’", "A\u0301b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := Detect([]string{text})
		if r.Confidence < 0 || r.Confidence > 1 || r.Tag == "" {
			t.Errorf("%+v", r)
		}
		if r.Known != (r.Tag != Undetermined) && r.Known {
			t.Errorf("known and undetermined: %+v", r)
		}
		if diff := cmp.Diff(r, Detect([]string{text})); diff != "" {
			t.Error(diff)
		}
	})
}

func BenchmarkDetect(b *testing.B) {
	tests := map[string]string{
		"a request": "Delete the pod web-1 in staging, please.",
		"64 KiB":    strings.Repeat("Show me the pods of checkout in staging, please. ", 1337),
	}
	for name, text := range tests {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Detect([]string{text})
			}
		})
	}
}
