package judge

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"gatewright.dev/gatewright/internal/questions"
	"gatewright.dev/gatewright/internal/strictjson"
)

// shape says what a value looks like; a value may have several.
type shape uint16

const (
	shapeNumber  shape = 1 << iota
	shapeID            // holds a digit or a sign of addresses
	shapeTarget        // an address, or an argument named like a receiver
	shapeText          // more than three words
	shapeMoney         // a number in an argument named like an amount
	shapeFlag          // false; true is a value, of the words of its name
	shapeNothing       // null or an empty text
	shapeDate          // a date or a time
	shapeSmall         // 0, 1 or 2, which programs fill in
	shapeHandle        // a name that a system gave, such as 5f3-a or 12446
)

// origin is where a value stands, from the most trusted to the least.
type origin uint8

const (
	fromUser origin = iota
	fromFacts
	fromSchema
	fromPartUser // only a part of it stands in the user's words or in a fact
	fromTool
	fromPartTool
	fromEarlier // stands nowhere but in the arguments of a call before any tool result
	fromRelated // stands nowhere, but an earlier call read what the argument's name or the tool's says
	fromRead    // stands nowhere, but an earlier call read something
	fromNowhere
)

// leaf is one value of the arguments.
type leaf struct {
	words []int16 // by place in keys.words; all of them, in order
	shape shape
	// stated is the origin that was found, origin the one that counts for the head that looks.
	stated, origin origin
	// covered is the share of its content words that the user said, whatever the order.
	covered float64
	// reused says that a call before any tool result had the same value.
	reused bool
	// In tool results: what is worst about any of the places that hold the value. The passages in which it stands, or one
	// beside them, order what the tool does, speak of it, or urge; besideUrge says that any passage of the result urges a machine.
	inProse, inPlea, byOrder, bySpeech, byUrge, besideUrge bool
	// result is the latest result that holds the value, counted from 1.
	result int
	asked  float64 // the least reason that the user gave for any of the results that hold it
	named  []int16 // words of the argument's name
	topics topics  // of them, and of the tool's object if the name says nothing but that it names something
}

// maxWords bounds the distinct words of one call.
const maxWords = 2048

// keys are the words that a call consists of, each with a number.
type keys struct {
	id     map[string]int16
	weight []float64
	// object are words of the tool's name that are no verbs, or name a thing; name all of the name; args those of argument names.
	object, name, args, about []int16
	// values are content words of values.
	values []int16
	leaves []leaf
	// named are the words of lastName, the name of the argument that was read last.
	named    []int16
	lastName string
	topics   topics
	acts     acts
	verb     []int16 // words of the tool's name that are verbs
}

// add numbers a word. Words beyond the bound share the number -1, which stands nowhere.
func (k *keys) add(t token) int16 {
	if n, ok := k.id[t.stem]; ok {
		return n
	}
	if len(k.weight) >= maxWords {
		return -1
	}
	n := int16(len(k.weight))
	k.id[t.stem] = n
	weight := 1 + 0.25*float64(len(t.stem))
	if isStop(t) {
		weight = 0
	}
	k.weight = append(k.weight, weight)
	return n
}

// newKeys takes a call apart.
func newKeys(s *questions.State) *keys {
	k := &keys{id: make(map[string]int16, 64)}
	k.readTool(&s.Tool)
	sources := make(map[string]questions.ArgumentSource, len(s.Facts.ArgumentSources))
	for _, f := range s.Facts.ArgumentSources {
		sources[f.Pointer] = f
	}
	k.readValue(sources, "", "", s.Arguments)
	return k
}

// readTool finds what the tool does: by the verbs of its name, else by how its description begins.
func (k *keys) readTool(t *questions.Tool) {
	words := nameTokens(t.Name)
	for _, w := range words {
		id := k.add(w)
		if isStop(w) {
			continue
		}
		k.name = append(k.name, id)
		m := meaning(w)
		k.acts |= m.acts
		if m.acts != 0 && (len(words) == 1 || !isThing(w)) {
			k.verb = append(k.verb, id)
		} else {
			k.object = append(k.object, id)
		}
	}
	first, _, _ := strings.Cut(t.Description, ". ")
	for i, w := range tokens(first) {
		if len(k.acts.list()) == 0 && i < 2 || k.acts == 0 && i < 4 {
			k.acts |= meaning(w).acts
		}
		if !isStop(w) && len(k.about) < 24 {
			k.about = append(k.about, k.add(w))
		}
	}
}

// list names the kinds of action in a set.
func (a acts) list() []acts {
	var all []acts
	for bit := acts(1); bit <= actLogin; bit <<= 1 {
		if a&bit != 0 {
			all = append(all, bit)
		}
	}
	return all
}

// readValue walks the arguments in a fixed order. name is the nearest member name above a value.
func (k *keys) readValue(sources map[string]questions.ArgumentSource, pointer, name string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			for _, w := range nameTokens(key) {
				if !isStop(w) {
					k.args = append(k.args, k.add(w))
				}
			}
			k.readValue(sources, pointer+"/"+strictjson.EscapeToken(key), key, v[key])
		}
	case []any:
		for i, item := range v {
			k.readValue(sources, pointer+"/"+strconv.Itoa(i), name, item)
		}
	default:
		k.readLeaf(sources, pointer, name, v)
	}
}

func (k *keys) readLeaf(sources map[string]questions.ArgumentSource, pointer, name string, v any) {
	l := leaf{stated: originAt(sources, pointer), asked: -1}
	l.named, l.topics = k.wordsOf(name)
	text, isNumber := leafText(v)
	text = visible(text)
	switch v {
	case nil, "":
		l.shape |= shapeNothing
	case false:
		l.shape |= shapeFlag
	default:
		words := tokens(text)
		if v == true { // nobody says true: who wants a flag names it
			words = nameTokens(name)
		}
		for _, w := range words {
			id := k.add(w)
			l.words = append(l.words, id)
			if id >= 0 && k.weight[id] > 0 {
				k.values = append(k.values, id)
			}
		}
		l.shape |= shapeOf(name, text, isNumber, len(l.words))
	}
	k.leaves = append(k.leaves, l)
}

// wordsOf are the words of an argument's name. The values of a list share them.
func (k *keys) wordsOf(name string) ([]int16, topics) {
	if k.named == nil || k.lastName != name {
		k.lastName, k.named, k.topics = name, []int16{}, 0
		for _, w := range nameTokens(name) {
			k.topics |= meaning(w).topics
			if !isStop(w) {
				k.named = append(k.named, k.add(w))
			}
		}
	}
	return k.named, k.topics
}

// originAt is the source of the value or of what holds it. A value without a stated source stands nowhere.
func originAt(sources map[string]questions.ArgumentSource, pointer string) origin {
	for {
		if f, ok := sources[pointer]; ok {
			return originOf(f)
		}
		at := strings.LastIndexByte(pointer, '/')
		if at < 0 {
			return fromNowhere
		}
		pointer = pointer[:at]
	}
}

func originOf(f questions.ArgumentSource) origin {
	switch f.Source {
	case questions.SourceUser:
		return fromUser
	case questions.SourceFacts:
		return fromFacts
	case questions.SourceSchema:
		return fromSchema
	case questions.SourceTool:
		return fromTool
	case questions.SourcePartly:
		if f.PartOf == questions.SourceUser || f.PartOf == questions.SourceFacts {
			return fromPartUser
		}
		return fromPartTool
	}
	return fromNowhere
}

func leafText(v any) (text string, isNumber bool) {
	switch v := v.(type) {
	case string:
		return v, false
	case int64:
		return strconv.FormatInt(v, 10), true
	case int:
		return strconv.Itoa(v), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	}
	return "", false
}

// targetNames and moneyNames are words in names of arguments that say to whom and how much.
var (
	targetNames = wordSet(`to recipient recipients receiver receivers email emails mail address account iban user users username url uri link host hostname
		server phone number channel channels destination target participant participants attendee attendees invitee member members contact cc bcc
		webhook endpoint beneficiary payee namespace cluster repo repository branch path file`)
	moneyNames = wordSet(`amount price cost total money payment fee sum value limit budget quantity balance tip refund replicas`)
)

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		set[w] = true
	}
	return set
}

func shapeOf(name, text string, isNumber bool, words int) shape {
	var s shape
	if isNumber {
		s |= shapeNumber
	}
	if !isNumber && strings.ContainsAny(text, "@/0123456789") && words <= 12 {
		s |= shapeID
	}
	if strings.ContainsRune(text, '@') && words <= 8 || strings.Contains(text, "://") || strings.HasPrefix(text, "www.") {
		s |= shapeTarget
	}
	if isDate(text) {
		return shapeDate
	}
	if isNumber && (text == "0" || text == "1" || text == "2") {
		s |= shapeSmall
	}
	if words > 3 && !isNumber && s&shapeTarget == 0 && strings.ContainsRune(text, ' ') {
		s |= shapeText
	}
	if isHandle(name, text, isNumber) {
		s |= shapeHandle
	}
	for _, w := range nameTokens(name) {
		if targetNames[w.text] && s&shapeText == 0 {
			s |= shapeTarget
		}
		if moneyNames[w.text] && isNumber {
			s |= shapeMoney
		}
	}
	return s
}

// handleNames are words in names of arguments that hold what a system gave as a name.
var handleNames = wordSet(`id ids uid uuid number code key ref no handle pk sku`)

// isHandle reports a value that nobody makes up in words: one run of letters and digits, and for a number a name that says so.
func isHandle(name, text string, isNumber bool) bool {
	if strings.ContainsAny(text, " @/:.,") || !strings.ContainsAny(text, "0123456789") {
		return false
	}
	if !isNumber && strings.IndexFunc(text, unicode.IsLetter) >= 0 {
		return true
	}
	return slices.ContainsFunc(nameTokens(name), func(t token) bool { return handleNames[t.text] })
}

// isDate reports a date, a time or both, as programs write them.
func isDate(text string) bool {
	const longest = 32
	if len(text) < 4 || len(text) > longest || text[0] < '0' || text[0] > '9' {
		return false
	}
	digits, signs := 0, 0
	for i := range len(text) {
		switch c := text[i]; {
		case c >= '0' && c <= '9':
			digits++
		case c == '-' || c == ':' || c == '/':
			signs++
		case strings.IndexByte(" TZ.+apmAPM", c) < 0:
			return false
		}
	}
	return signs >= 1 && digits >= 3 && digits <= 20 && (signs >= 2 || strings.ContainsRune(text, ':'))
}
