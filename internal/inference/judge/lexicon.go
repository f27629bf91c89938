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
	cueYes:       `yes yeah yep sure ok okay confirm confirmed correct proceed great perfect thanks right fine good absolutely definitely agreed`,
	cueNot:       `not don dont never without no cannot cant won wont stop instead rather`,
	cueRestricts: `cannot only must unless never not if required eligible deny allowed forbidden prohibited before without always within`,
	cueStop: `a an the to of for in on at by with and or is are be it this that i me my you your can could would do from as so if not no
		into up all some have has will want use using make also then there their its was were been am he she they we us our his her them what
		when which who how s t re ll ve im please need just about any`,
}

// entry is what the lexicon knows about a word.
type entry struct {
	acts acts
	cues cue
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
	// Cues go by the word as written; where that is not the stem, it needs a row of its own with the acts of its stem.
	for c, words := range cueWords {
		for w := range strings.FieldsSeq(words) {
			e, ok := all[w]
			if !ok {
				e.acts = all[stem(w)].acts
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
	}
	return e
}

func isStop(t token) bool { return lexicon[t.text].cues&cueStop != 0 }
