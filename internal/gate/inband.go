package gate

import (
	review "gatewright.dev/gatewright/api/review/v1alpha1"
)

// Roles that can claim an approval. They are labels of a metric and part of what the person sees.
const (
	claimedByUser      = "user"
	claimedByAssistant = "assistant"
	claimedByTool      = "tool"
)

// inbandClaims names who in the conversation claims that a person has approved already, or that nobody need be asked.
// Such words change nothing about the call: they are counted and shown, because whoever needs them has a reason.
func (in *input) inbandClaims() []string {
	c := &in.review.Context
	var found []string
	for _, role := range []struct {
		name string
		role review.Role
		more string
	}{
		{claimedByUser, review.RoleUser, c.UserRequest},
		{claimedByAssistant, review.RoleAssistant, ""},
		{claimedByTool, review.RoleTool, ""},
	} {
		claims := claimsApproval(role.more)
		for i := 0; i < len(c.Messages) && !claims; i++ {
			claims = c.Messages[i].Role == role.role && claimsApproval(c.Messages[i].Content)
		}
		if claims {
			found = append(found, role.name)
		}
	}
	return found
}

// wordKind is what a word means in a claim.
type wordKind uint8

const (
	otherWord    wordKind = iota
	grantedWord           // that a person has agreed
	someoneWord           // who or when, beside a granted word
	consentWord           // what is asked for
	givenWord             // that a consent word was given
	waiveWord             // to leave out what follows
	absentWord            // "no", "without": there is none of what follows
	needWord              // "needed", "required", "ask": with an absent word
	negationWord          // turns what follows into its opposite
	wordKindCount
)

// wordKinds is the whole vocabulary, in lower case. English only: a claim in another language is not counted.
var wordKinds = map[string]wordKind{
	"approved": grantedWord, "preapproved": grantedWord, "authorized": grantedWord, "authorised": grantedWord,
	"preauthorized": grantedWord, "confirmed": grantedWord, "consented": grantedWord, "greenlit": grantedWord,
	"already": someoneWord, "previously": someoneWord, "pre": someoneWord, "explicitly": someoneWord, "user": someoneWord,
	"admin": someoneWord, "administrator": someoneWord, "manager": someoneWord, "owner": someoneWord, "human": someoneWord,
	"operator": someoneWord, "supervisor": someoneWord, "customer": someoneWord, "person": someoneWord,
	"confirmation": consentWord, "confirmations": consentWord, "approval": consentWord, "approvals": consentWord,
	"authorization": consentWord, "authorisation": consentWord, "permission": consentWord, "consent": consentWord,
	"confirm": consentWord, "confirming": consentWord,
	"granted": givenWord, "given": givenWord, "obtained": givenWord, "received": givenWord,
	"skip": waiveWord, "skipping": waiveWord, "bypass": waiveWord, "bypassing": waiveWord, "waive": waiveWord, "omit": waiveWord,
	"disregard": waiveWord, "override": waiveWord,
	"no": absentWord, "without": absentWord,
	"need": needWord, "needed": needWord, "required": needWord, "necessary": needWord, "asking": needWord, "waiting": needWord,
	"not": negationWord, "never": negationWord, "unless": negationWord, "until": negationWord, "if": negationWord, "t": negationWord,
}

// wordShapes says by first letter which lengths the vocabulary has, as bits: most words of a text are none of them, and
// need not be looked up.
var wordShapes = func() (shapes ['z' + 1]uint32) {
	for word := range wordKinds {
		shapes[word[0]] |= 1 << len(word)
	}
	return shapes
}()

// claimWindow is how many words a claim may stretch over.
const claimWindow = 7

// negationReach is how many words behind itself a negation turns around.
const negationReach = 3

// longestWord bounds the words that are looked at; a longer one is none of the vocabulary.
const longestWord = 16

// claimsApproval looks, sentence by sentence, for one of three forms within a few words: granted beside someone ("the user
// already approved this"), consent beside given ("permission was granted"), and waive or absent with consent ("skip
// confirmation", "no approval needed"). A negation shortly before makes it none ("not yet approved").
func claimsApproval(text string) bool {
	var window [claimWindow]wordKind
	n := 0 // words of the sentence so far
	for i := 0; i < len(text); {
		if lowerLetters[text[i]] == 0 {
			if isSentenceEnd(text[i]) {
				n = 0
			}
			i++
			continue
		}
		end := i + 1
		for end < len(text) && lowerLetters[text[end]] != 0 {
			end++
		}
		kind := kindOf(text[i:end])
		i = end
		n++
		copy(window[:], window[1:])
		window[claimWindow-1] = kind
		if kind != otherWord && isClaim(window[claimWindow-min(n, claimWindow):]) {
			return true
		}
	}
	return false
}

func kindOf(text string) wordKind {
	if len(text) > longestWord || wordShapes[lowerLetters[text[0]]]&(1<<len(text)) == 0 {
		return otherWord
	}
	var word [longestWord]byte
	for i := range len(text) {
		word[i] = lowerLetters[text[i]]
	}
	return wordKinds[string(word[:len(text)])]
}

// lowerLetters gives the lower case of ASCII letters, and 0 for everything else.
var lowerLetters = func() (table [256]byte) {
	for c := byte('a'); c <= 'z'; c++ {
		table[c], table[c-'a'+'A'] = c, c
	}
	return table
}()

func isSentenceEnd(c byte) bool { return c == '.' || c == '!' || c == '?' || c == '\n' || c == ';' }

// isClaim says whether the words of a window, of which the last is new, make a claim.
func isClaim(window []wordKind) bool {
	var seen [wordKindCount]int // position + 1 of the last word of each kind
	for i, kind := range window {
		seen[kind] = i + 1
	}
	isNear := func(a, b wordKind) bool { return seen[a] > 0 && seen[b] > 0 }
	isBefore := func(a, b wordKind) bool { return isNear(a, b) && seen[a] < seen[b] }
	isNegated := func(kind wordKind) bool {
		return isBefore(negationWord, kind) && seen[kind]-seen[negationWord] <= negationReach
	}
	switch {
	case isNegated(grantedWord), isNegated(consentWord):
		return false
	case isNear(grantedWord, someoneWord), isNear(consentWord, givenWord), isBefore(waiveWord, consentWord):
		return true
	}
	return isBefore(absentWord, consentWord) && seen[needWord] > 0
}
