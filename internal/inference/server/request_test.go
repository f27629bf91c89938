package server

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/internal/inference/engine"
	"gatewright.dev/gatewright/internal/questions"
)

func many(n int, each func(i int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = each(i)
	}
	return strings.Join(parts, ",")
}

func q(fields string) string { return `{"state":"s","questions":{"q":{` + fields + `}}}` }

func TestBadRequests(t *testing.T) {
	const says = `"instructions":"Is it?"`
	option := func(i int) string { return fmt.Sprintf(`"o%d":null`, i) }
	level := func(i int) string { return fmt.Sprintf(`"l%d"`, i) }
	tests := map[string]struct {
		body   string
		header []string
		status int
		code   Code
		detail string // a part of the body
	}{
		"an empty body":                     {body: ``, status: 400, code: CodeInvalidJSON, detail: `"rule":"Empty"`},
		"white space":                       {body: " \n", status: 400, code: CodeInvalidJSON, detail: `"rule":"Empty"`},
		"prose":                             {body: `is it?`, status: 400, code: CodeInvalidJSON, detail: `"rule":"Syntax"`},
		"a body that was cut":               {body: asks(`"s"`)[:20], status: 400, code: CodeInvalidJSON, detail: `"rule":"Syntax"`},
		"two bodies":                        {body: asks(`"s"`) + asks(`"s"`), status: 400, code: CodeInvalidJSON, detail: `"rule":"TrailingData"`},
		"a byte order mark":                 {body: "\ufeff" + asks(`"s"`), status: 400, code: CodeInvalidJSON, detail: `byte order mark`},
		"bytes that are not UTF-8":          {body: asks("\"\xff\""), status: 400, code: CodeInvalidJSON, detail: `"rule":"InvalidUTF8"`},
		"half of a surrogate pair":          {body: asks(`"\ud800"`), status: 400, code: CodeInvalidJSON, detail: `"rule":"InvalidUTF8"`},
		"a state named twice":               {body: `{"state":"s","state":"t",` + oneQuestion + `}`, status: 400, code: CodeInvalidJSON, detail: `"rule":"DuplicateKey"`},
		"a question named twice":            {body: `{"state":"s","questions":{"q":{"type":"noul",` + says + `},"q":{"type":"noul",` + says + `}}}`, status: 400, code: CodeInvalidJSON, detail: `"rule":"DuplicateKey"`},
		"an option named twice":             {body: q(`"type":"choice",` + says + `,"criteria":{"a":null,"a":null}`), status: 400, code: CodeInvalidJSON, detail: `"rule":"DuplicateKey"`},
		"a name twice deep in the state":    {body: asks(`{"a":[{"b":1,"b":2}]}`), status: 400, code: CodeInvalidJSON, detail: `"rule":"DuplicateKey"`},
		"a state nested too deep":           {body: asks(strings.Repeat("[", 90) + "1" + strings.Repeat("]", 90)), status: 400, code: CodeInvalidJSON, detail: `"rule":"TooDeep"`},
		"a number that no double holds":     {body: asks(`[9007199254740993]`), status: 400, code: CodeInvalidJSON, detail: `"rule":"NumberNotExact"`},
		"NaN":                               {body: asks(`[NaN]`), status: 400, code: CodeInvalidJSON, detail: `"rule":"NotFinite"`},
		"too many names":                    {body: asks(`{` + many(9000, func(i int) string { return fmt.Sprintf(`"k%d":1`, i) }) + `}`), status: 400, code: CodeInvalidJSON, detail: `"rule":"TooManyKeys"`},
		"an array":                          {body: `[]`, status: 422, code: CodeValidation, detail: "an object is expected here"},
		"null":                              {body: `null`, status: 422, code: CodeValidation, detail: "an object is expected here"},
		"an unknown member":                 {body: `{"stream":true,"state":"s",` + oneQuestion + `}`, status: 422, code: CodeValidation, detail: "the known ones are model, state, questions"},
		"a member in another case":          {body: `{"State":"s",` + oneQuestion + `}`, status: 422, code: CodeValidation, detail: "an unknown member"},
		"a model that is a number":          {body: `{"model":1,"state":"s",` + oneQuestion + `}`, status: 422, code: CodeValidation, detail: `"pointer":"/model"`},
		"a model that is null":              {body: `{"model":null,"state":"s",` + oneQuestion + `}`, status: 422, code: CodeValidation, detail: `"pointer":"/model"`},
		"another model":                     {body: `{"model":"judge-2","state":"s",` + oneQuestion + `}`, status: 404, code: CodeUnknownModel, detail: "/v1/models"},
		"no state":                          {body: `{` + oneQuestion + `}`, status: 422, code: CodeValidation, detail: "state is required"},
		"a state that is null":              {body: asks(`null`), status: 422, code: CodeValidation, detail: "a string, an object or an array"},
		"a state that is a number":          {body: asks(`5`), status: 422, code: CodeValidation, detail: "a string, an object or an array"},
		"a state that is true":              {body: asks(`true`), status: 422, code: CodeValidation, detail: "a string, an object or an array"},
		"an empty text as state":            {body: asks(`""`), status: 422, code: CodeValidation, detail: "state must not be empty"},
		"white space as state":              {body: asks(`" \n"`), status: 422, code: CodeValidation, detail: "state must not be empty"},
		"an empty object as state":          {body: asks(`{}`), status: 422, code: CodeValidation, detail: "state must not be empty"},
		"an empty array as state":           {body: asks(`[]`), status: 422, code: CodeValidation, detail: "state must not be empty"},
		"names that become the same":        {body: asks(`{"<a":1,"< a":2}`), status: 422, code: CodeStateUnreadable, detail: "the same for the model"},
		"no questions":                      {body: `{"state":"s"}`, status: 422, code: CodeValidation, detail: "questions are required"},
		"questions that are null":           {body: `{"state":"s","questions":null}`, status: 422, code: CodeValidation, detail: "questions are required"},
		"questions as a list":               {body: `{"state":"s","questions":[]}`, status: 422, code: CodeValidation, detail: "questions must be an object"},
		"zero questions":                    {body: `{"state":"s","questions":{}}`, status: 422, code: CodeValidation, detail: "1 to 64"},
		"65 questions":                      {body: `{"state":"s","questions":{` + many(65, func(i int) string { return fmt.Sprintf(`"q%d":{"type":"noul",%s}`, i, says) }) + `}}`, status: 422, code: CodeValidation, detail: "1 to 64"},
		"an empty id":                       {body: `{"state":"s","questions":{"":{"type":"noul",` + says + `}}}`, status: 422, code: CodeValidation, detail: "id of a question"},
		"an id with a space":                {body: `{"state":"s","questions":{"a b":{"type":"noul",` + says + `}}}`, status: 422, code: CodeValidation, detail: "id of a question"},
		"an id of 101 letters":              {body: `{"state":"s","questions":{"` + strings.Repeat("a", 101) + `":{"type":"noul",` + says + `}}}`, status: 422, code: CodeValidation, detail: "id of a question"},
		"a question that is text":           {body: `{"state":"s","questions":{"q":"Is it?"}}`, status: 422, code: CodeValidation, detail: `"question":"q"`},
		"a question that is null":           {body: `{"state":"s","questions":{"q":null}}`, status: 422, code: CodeValidation, detail: `"pointer":"/questions/q"`},
		"an unknown member of a question":   {body: q(`"type":"noul",` + says + `,"weight":2`), status: 422, code: CodeValidation, detail: "type, instructions, criteria"},
		"no type":                           {body: q(says), status: 422, code: CodeValidation, detail: "noul, choice or score"},
		"an unknown type":                   {body: q(`"type":"box",` + says), status: 422, code: CodeValidation, detail: `"pointer":"/questions/q/type"`},
		"no instructions":                   {body: q(`"type":"noul"`), status: 422, code: CodeValidation, detail: "instructions are required"},
		"instructions that are null":        {body: q(`"type":"noul","instructions":null`), status: 422, code: CodeValidation, detail: "instructions are required"},
		"empty instructions":                {body: q(`"type":"noul","instructions":" "`), status: 422, code: CodeValidation, detail: "must not be empty"},
		"instructions that are a number":    {body: q(`"type":"noul","instructions":1`), status: 422, code: CodeValidation, detail: "a string, an object or an array"},
		"unreadable instructions":           {body: q(`"type":"noul","instructions":{"<a":1,"< a":2}`), status: 422, code: CodeStateUnreadable, detail: "/questions/q/instructions"},
		"an unknown outcome":                {body: q(`"type":"noul",` + says + `,"criteria":{"maybe":"x"}`), status: 422, code: CodeValidation, detail: "true, false"},
		"outcomes as a list":                {body: q(`"type":"noul",` + says + `,"criteria":["a","b"]`), status: 422, code: CodeValidation, detail: "an object is expected here"},
		"an outcome that is a number":       {body: q(`"type":"noul",` + says + `,"criteria":{"true":1}`), status: 422, code: CodeValidation, detail: `"pointer":"/questions/q/criteria/true"`},
		"a choice without options":          {body: q(`"type":"choice",` + says), status: 422, code: CodeValidation, detail: "must be an object"},
		"a choice of a list":                {body: q(`"type":"choice",` + says + `,"criteria":["a","b"]`), status: 422, code: CodeValidation, detail: "must be an object"},
		"one option":                        {body: q(`"type":"choice",` + says + `,"criteria":{"a":null}`), status: 422, code: CodeValidation, detail: "2 to 26"},
		"27 options":                        {body: q(`"type":"choice",` + says + `,"criteria":{` + many(27, option) + `}`), status: 422, code: CodeValidation, detail: "2 to 26"},
		"an option with a space":            {body: q(`"type":"choice",` + says + `,"criteria":{"a b":null,"c":null}`), status: 422, code: CodeValidation, detail: "name of an option"},
		"a description that is an object":   {body: q(`"type":"choice",` + says + `,"criteria":{"a":{},"b":null}`), status: 422, code: CodeValidation, detail: "a string or null"},
		"a score without levels":            {body: q(`"type":"score",` + says), status: 422, code: CodeValidation, detail: "an array of levels"},
		"a score of an object":              {body: q(`"type":"score",` + says + `,"criteria":{"0":"a","1":"b"}`), status: 422, code: CodeValidation, detail: "an array of levels"},
		"one level":                         {body: q(`"type":"score",` + says + `,"criteria":["a"]`), status: 422, code: CodeValidation, detail: "2 to 10"},
		"11 levels":                         {body: q(`"type":"score",` + says + `,"criteria":[` + many(11, level) + `]`), status: 422, code: CodeValidation, detail: "2 to 10"},
		"a level that is null":              {body: q(`"type":"score",` + says + `,"criteria":["a",null]`), status: 422, code: CodeValidation, detail: "a level must be"},
		"a level that is empty":             {body: q(`"type":"score",` + says + `,"criteria":["a",""]`), status: 422, code: CodeValidation, detail: "a level must be"},
		"a body over its limit":             {body: asks(`"` + strings.Repeat("x", 256<<10) + `"`), status: 413, code: CodeRequestTooLarge, detail: `"limit":262144`},
		"another kind of content":           {body: asks(`"s"`), header: []string{"Content-Type", "text/plain"}, status: 415, code: CodeUnsupportedMedia, detail: "application/json"},
		"no kind of content":                {body: asks(`"s"`), header: []string{"Content-Type", ""}, status: 415, code: CodeUnsupportedMedia, detail: "application/json"},
		"another character set":             {body: asks(`"s"`), header: []string{"Content-Type", "application/json; charset=latin1"}, status: 415, code: CodeUnsupportedMedia, detail: "UTF-8"},
		"a compressed body":                 {body: asks(`"s"`), header: []string{"Content-Encoding", "gzip"}, status: 415, code: CodeUnsupportedMedia, detail: "not compressed"},
		"a time that is no number":          {body: asks(`"s"`), header: []string{HeaderRequestTimeout, "soon"}, status: 400, code: CodeInvalidHeader, detail: "seconds"},
		"no time at all":                    {body: asks(`"s"`), header: []string{HeaderRequestTimeout, "0"}, status: 400, code: CodeInvalidHeader, detail: "seconds"},
		"a time that is not a number":       {body: asks(`"s"`), header: []string{HeaderRequestTimeout, "NaN"}, status: 400, code: CodeInvalidHeader, detail: "seconds"},
		"a time before the request":         {body: asks(`"s"`), header: []string{HeaderRequestTimeout, "-1"}, status: 400, code: CodeInvalidHeader, detail: "seconds"},
		"a time too short for any question": {body: asks(`"s"`), header: []string{HeaderRequestTimeout, "0.000000001"}, status: 504, code: CodeDeadlineExceeded, detail: "before all questions"},
	}
	r := start(t, newScripted())
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := r.post(t, tt.body, tt.header...)
			if got.status != tt.status || codeIn(t, got) != tt.code || !strings.Contains(got.body, tt.detail) {
				t.Errorf("got %d %s, want %d with %s and %s", got.status, got.body, tt.status, tt.code, tt.detail)
			}
		})
	}
	if asked := r.engine.asked(); len(asked) != 0 {
		t.Errorf("the engine was asked about %d bad requests", len(asked))
	}
}

// codeIn reads a refusal as strictly as it was written.
func codeIn(t testing.TB, got response) Code {
	t.Helper()
	var body wireRefusal
	if err := json.Unmarshal([]byte(got.body), &body, json.RejectUnknownMembers(true)); err != nil {
		t.Fatalf("%d %q: %v", got.status, got.body, err)
	}
	if body.Detail.Message == "" {
		t.Errorf("a refusal without words: %s", got.body)
	}
	return body.Detail.ErrorType
}

func TestOtherPathsAndMethods(t *testing.T) {
	tests := map[string]struct {
		method, path string
		status       int
		code         Code
	}{
		"asking by GET":        {http.MethodGet, PathSystemOne, 405, CodeMethodNotAllowed},
		"asking by PUT":        {http.MethodPut, PathSystemOne, 405, CodeMethodNotAllowed},
		"listing by POST":      {http.MethodPost, PathModels, 405, CodeMethodNotAllowed},
		"another path":         {http.MethodPost, "/v1/decisions", 404, CodeNotFound},
		"the root":             {http.MethodGet, "/", 404, CodeNotFound},
		"profiles":             {http.MethodGet, "/debug/pprof/", 404, CodeNotFound},
		"a path below a model": {http.MethodGet, "/v1/models/judge-1", 404, CodeNotFound},
	}
	r := start(t, newScripted())
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := r.send(t.Context(), tt.method, tt.path, asks(`"s"`))
			if err != nil {
				t.Fatal(err)
			}
			if got.status != tt.status || codeIn(t, got) != tt.code {
				t.Errorf("got %d %s", got.status, got.body)
			}
		})
	}
}

func TestEveryFieldOfAReply(t *testing.T) {
	e := newScripted()
	e.does(func(_ context.Context, _ []byte, asked []questions.Question) (engine.Reply, error) {
		reply := engine.Reply{PromptTokens: 212, ReusedTokens: 100}
		for range asked {
			reply.Distributions = append(reply.Distributions, engine.Distribution{})
		}
		reply.Distributions[0] = engine.Distribution{Probabilities: []float64{0.1234567890123456, 0.8765432109876544}, Coverage: 0.9}
		reply.Distributions[1] = engine.Distribution{Probabilities: []float64{0.02, 0.88, 0.1}, Coverage: 1}
		reply.Distributions[2] = engine.Distribution{Probabilities: []float64{0.5, 0.25, 0.125, 0.125}, Coverage: 0.5}
		return reply, nil
	})
	r := start(t, e, func(o *Options) { o.Aliases = []string{"judge"} })
	got := r.post(t, `{"model":"judge","state":"s","questions":{
		"y":{"type":"noul","instructions":"Is it?"},
		"c":{"type":"choice","instructions":"Which?","criteria":{"z":null,"a":"the first","m":""}},
		"s":{"type":"score","instructions":["How","bad?"],"criteria":["none","some","much","all"]}}}`)
	want := `{"model":"judge-1","fingerprint":"sha256:` + strings.Repeat("cd", 32) + `","sha256":"` + strings.Repeat("ab", 32) + `","answers":{` +
		`"y":{"type":"noul","noul":0.1234567890123456,"coverage":0.9},` +
		`"c":{"type":"choice","choice":"a","confidence":0.8200000000000001,"probabilities":{"z":0.02,"a":0.88,"m":0.1},"coverage":1},` +
		`"s":{"type":"score","score":0.875,"confidence":0.125,"legend":{"0":"none","1":"some","2":"much","3":"all"},` +
		`"probabilities":{"0":0.5,"1":0.25,"2":0.125,"3":0.125},"coverage":0.5}},` +
		`"usage":{"input_tokens":212,"output_tokens":3,"reused_tokens":100}}`
	if diff := cmp.Diff(want, strings.TrimSpace(got.body)); diff != "" || got.status != 200 {
		t.Errorf("status %d (-want +got):\n%s", got.status, diff)
	}
	if h := got.header.Get(HeaderFingerprint); h != r.info.Fingerprint {
		t.Errorf("fingerprint in the header is %q", h)
	}
	timing := got.header.Get("Server-Timing")
	for _, phase := range []string{"parse", "queue", "prompt", "total"} {
		if !strings.Contains(timing, phase+";dur=") {
			t.Errorf("Server-Timing %q has no %s", timing, phase)
		}
	}
}

func TestConfidence(t *testing.T) {
	tests := map[string]struct {
		of   func([]float64) float64
		p    []float64
		want float64
	}{
		"a certain choice":               {choiceConfidence, []float64{0, 1, 0}, 1},
		"an undecided choice":            {choiceConfidence, []float64{0.5, 0.5}, 0},
		"a choice of three":              {choiceConfidence, []float64{0.88, 0.1, 0.02}, 0.82},
		"a certain score":                {scoreConfidence, []float64{0, 0, 1}, 1},
		"a score spread evenly":          {scoreConfidence, []float64{0.25, 0.25, 0.25, 0.25}, 0},
		"a score at both ends":           {scoreConfidence, []float64{0.5, 0, 0, 0.5}, 0},
		"a score next to a level":        {scoreConfidence, []float64{0.66, 0.28, 0.05, 0.01}, 0.59},
		"two levels, hardly apart":       {scoreConfidence, []float64{0.49, 0.51}, 0.02},
		"a sum that misses 1 by one bit": {choiceConfidence, []float64{1 + 1e-9, 0}, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tt.of(tt.p); math.Abs(got-tt.want) > 1e-9 {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestModelsAreListed(t *testing.T) {
	e := newScripted()
	e.info.Supports = []string{"asked", "declined"}
	r := start(t, e)
	got := r.get(t, PathModels)
	var body wireModels
	if err := json.Unmarshal([]byte(got.body), &body); err != nil {
		t.Fatal(err)
	}
	want := wireModels{[]wireModel{{
		Name: "judge-1", Description: "llama read by LabelLogits", SHA256: e.info.SHA256, Fingerprint: e.info.Fingerprint, Architecture: "llama",
		Readout: "LabelLogits", Library: "scripted 1", CPUVariant: "none", ContextTokens: 2048, Threads: 1, Questions: []string{"asked", "declined"}, Ready: true,
	}}}
	if diff := cmp.Diff(want, body); diff != "" || got.status != 200 {
		t.Errorf("status %d (-want +got):\n%s", got.status, diff)
	}
	if !strings.Contains(got.body, `"release_date":""`) {
		t.Errorf("clients of others want a release date, even an empty one: %s", got.body)
	}
}

// TestMetrics reads what is exported after one answer and one refusal.
func TestMetrics(t *testing.T) {
	r := start(t, newScripted())
	if got := r.post(t, asks(`"s"`)); got.status != 200 {
		t.Fatal(got)
	}
	r.post(t, asks(`""`))
	text := ""
	eventually(t, "both requests are counted", func() bool {
		text = r.get(t, "/metrics").body
		return strings.Contains(text, `phase_seconds_count{phase="total"} 2`)
	})
	for _, line := range []string{
		`gatewright_decider_server_requests_total{code="200"} 1`, `gatewright_decider_server_requests_total{code="422"} 1`,
		`gatewright_decider_server_refused_total{reason="validation_error"} 1`, `gatewright_decider_server_phase_seconds_count{phase="queue"} 1`,
		`gatewright_decider_server_phase_seconds_count{phase="prompt"} 1`, `gatewright_decider_server_phase_seconds_count{phase="parse"} 2`,
		`gatewright_decider_server_questions_total{type="noul"} 1`, `gatewright_decider_server_prompt_tokens_total 1`,
		`gatewright_decider_server_queue_length 0`, `gatewright_decider_server_in_flight 0`, `gatewright_decider_server_ready 1`,
		`sha256="` + r.info.SHA256 + `"`,
	} {
		if !strings.Contains(text, line) {
			t.Errorf("no %s", line)
		}
	}
	_, age, _ := strings.Cut(text, "\ngatewright_decider_server_verify_age_seconds ")
	age, _, _ = strings.Cut(age, "\n")
	if seconds, err := strconv.ParseFloat(age, 64); err != nil || seconds < 0 || seconds > 60 {
		t.Errorf("verify age %q", age)
	}
}

// TestOptionsAndQuestionsKeepTheirOrder sends as many as there can be, in no alphabetical order.
func TestOptionsAndQuestionsKeepTheirOrder(t *testing.T) {
	name := func(i int) string { return fmt.Sprintf("n%d", i*37%101) }
	body := `{"state":"s","questions":{` + many(questions.MaxQuestions, func(i int) string {
		return `"` + name(i) + `":{"type":"choice","instructions":"i","criteria":{` + many(questions.MaxOptions, func(j int) string { return `"` + name(i+j) + `":null` }) + `}}`
	}) + `}}`
	req, refused := parseRequest([]byte(body), 1<<20)
	if refused != nil {
		t.Fatal(refused.message)
	}
	for i, q := range req.asked {
		if q.Name != name(i) || len(q.Options) != questions.MaxOptions {
			t.Fatalf("question %d is %s with %d options", i, q.Name, len(q.Options))
		}
		for j, o := range q.Options {
			if o.Name != name(i+j) {
				t.Fatalf("option %d of question %d is %s", j, i, o.Name)
			}
		}
	}
}
