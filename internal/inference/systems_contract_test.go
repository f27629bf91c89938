package inference

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gatewright.dev/gatewright/internal/questions"
)

const contracts = "testdata/contract"

// system is a decider by its documented shape: how it is asked, and what it would refuse to be asked.
type system struct {
	// path where it must be asked, with the model in it where the wire puts it there.
	path string
	// asks are the questions of the one request that is recorded.
	asks []string
	// model is its name in a manifest.
	model string
	// token is sent where the system wants one.
	token  string
	client func(o ServerOptions) (Decider, error)
	// accepts says what the system would have against a request; nil if only the reply is of interest.
	accepts func(body []byte) error
}

func typed(o ServerOptions) (Decider, error) { return NewSystemOne(SystemOneOptions{ServerOptions: o}) }

// chatWindow is the window that the shapes of Ollama were written for.
const chatWindow = 4096

var threeTypes = []string{"asked", "verdict", "severity"}

var systems = map[string]system{
	"jev":           {path: SystemOnePath, asks: threeTypes, model: "jev-1.13.0", token: "key", client: typed, accepts: limits{options: 255, types: "noul choice score"}.check},
	"strands":       {path: SystemOnePath, asks: threeTypes, model: "strands-decider-2B-hobson-v19", client: typed, accepts: limits{options: 255, types: "noul choice score"}.check},
	"jevos":         {path: SystemOnePath, asks: []string{"asked", "declined"}, model: "jevos-v2", token: "key", client: typed, accepts: limits{options: 255, types: "noul"}.check},
	"clef":          {path: "/client/v4/accounts/0a1b/ai/run/@cf/cloudflare/clef", asks: threeTypes, model: "@cf/cloudflare/clef", token: "key", client: typed, accepts: limits{options: 255, questions: 64, types: "noul choice score"}.check},
	"llamacpp":      {path: SystemOnePath, asks: threeTypes, model: "julia-1", client: typed, accepts: limits{options: 52, types: "noul choice score"}.check},
	"llamacpp-jev":  {path: SystemOnePath, asks: threeTypes, model: "jev-latest", client: typed, accepts: limits{options: 64, questions: 64, types: "noul choice score"}.check},
	"ollama-native": {path: SystemOnePath, asks: threeTypes, model: "decider:2b", client: typed, accepts: limits{options: 255, bytes: 64 << 10, types: "noul choice score"}.check},
	"ollama-labels": {path: "/api/generate", asks: []string{"asked"}, model: "qwen3:1.7b", client: func(o ServerOptions) (Decider, error) {
		return NewOllama(OllamaOptions{ServerOptions: o, ContextTokens: chatWindow})
	}},
	"ollama-verdict": {path: "/api/chat", asks: []string{VerdictQuestion}, model: "qwen3:1.7b", client: func(o ServerOptions) (Decider, error) {
		return NewVerdictChat(VerdictChatOptions{ServerOptions: o, ContextTokens: chatWindow})
	}},
	"chat-verdict": {path: "/v1/chat/completions", asks: []string{VerdictQuestion}, model: "gpt-oss-20b", token: "key", client: func(o ServerOptions) (Decider, error) {
		return NewOpenAIChat(OpenAIChatOptions{ServerOptions: o})
	}},
}

// limits are the documented rules of a server of typed questions. Zero is no limit.
type limits struct {
	options, questions, bytes int
	types                     string
}

var wireID = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,100}$`)

// check says why a server with these rules would refuse a request: members that it does not know, a question without
// instructions, an id that it does not take, or more than it bears.
func (l limits) check(body []byte) error {
	var request struct {
		Model     string          `json:"model"`
		State     json.RawMessage `json:"state"`
		Questions map[string]struct {
			Type         string          `json:"type"`
			Instructions string          `json:"instructions"`
			Criteria     json.RawMessage `json:"criteria"`
		} `json:"questions"`
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&request); err != nil {
		return err
	}
	switch {
	case request.Model == "" || len(request.State) < 3 || len(request.Questions) == 0:
		return fmt.Errorf("model, state or questions are missing")
	case l.bytes > 0 && len(body) > l.bytes, l.questions > 0 && len(request.Questions) > l.questions:
		return fmt.Errorf("too large")
	}
	for id, q := range request.Questions {
		if !wireID.MatchString(id) || q.Instructions == "" || !strings.Contains(l.types, q.Type) {
			return fmt.Errorf("question %q of type %q is refused", id, q.Type)
		}
		if q.Type == "noul" {
			continue
		}
		var options map[string]*string
		var levels []string
		if q.Type == "choice" && (json.Unmarshal(q.Criteria, &options) != nil || len(options) < 2 || len(options) > l.options) {
			return fmt.Errorf("choice %q is refused", id)
		}
		if q.Type == "score" && (json.Unmarshal(q.Criteria, &levels) != nil || len(levels) < 2 || len(levels) > 10) {
			return fmt.Errorf("score %q is refused", id)
		}
	}
	return nil
}

// recorded reads a reply as it would come over the wire.
func recorded(t *testing.T, system, name string) *http.Response {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(contracts, system, name+".http"))
	if err != nil {
		t.Fatal(err)
	}
	reply, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(data)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// play serves a recorded reply to a request that the system would take.
func play(t *testing.T, s system, reply *http.Response) (*server, Decider) {
	t.Helper()
	body, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	fake := newServer(t, func(w http.ResponseWriter, path string, request []byte) {
		if path != s.path {
			t.Errorf("asked at %s, want %s", path, s.path)
		}
		if s.accepts != nil {
			if err := s.accepts(request); err != nil {
				t.Errorf("the system would refuse the request: %v", err)
			}
		}
		maps.Copy(w.Header(), reply.Header)
		w.WriteHeader(reply.StatusCode)
		_, _ = w.Write(body)
	})
	o := ServerOptions{BaseURL: fake.URL, Model: s.model, Transport: transport(t)}
	if strings.HasSuffix(s.path, s.model) {
		o.BaseURL += strings.Replace(s.path, "@", "%40", 1) // a manifest takes no @ in an address
	}
	if s.token != "" {
		o.Token = func() string { return s.token }
	}
	return fake, must(s.client(o))
}

func TestNamedSystemsAnswer(t *testing.T) {
	typedAnswers := func(asked float64, a, c, b float64, score float64, levels ...float64) questions.Answers {
		return questions.Answers{
			"asked":   {Type: questions.YesNo, Probability: asked, Coverage: 1},
			"verdict": {Type: questions.Choice, Choice: "allow", Probabilities: map[string]float64{"allow": a, "confirm": c, "block": b}, Coverage: 1},
			"severity": {Type: questions.Score, Score: score, Coverage: 1,
				Probabilities: map[string]float64{"0": levels[0], "1": levels[1], "2": levels[2], "3": levels[3]}},
		}
	}
	verdict := func(choice string) questions.Answers {
		return questions.Answers{VerdictQuestion: {Type: questions.Choice, Choice: choice, Verdict: true, Coverage: 1}}
	}
	tests := map[string]struct {
		system         string
		want           questions.Answers
		input, written int
	}{
		"Jev rounds to two decimals, and its sum of 0.99 is taken": {"jev", typedAnswers(.97, .88, .10, .01, .41, .66, .28, .05, .01), 212, 31},
		"Strands rounds to four decimals and adds latency_ms":      {"strands", typedAnswers(.9731, .8123, .1544, .0333, .5, .6101, .2899, .0899, .0101), 388, 3},
		"jevos adds a confidence to each noul": {"jevos", questions.Answers{
			"asked": {Type: questions.YesNo, Probability: .9128, Coverage: 1}, "declined": {Type: questions.YesNo, Probability: .0412, Coverage: 1},
		}, 181, 2},
		"Clef answers in the envelope of its platform":     {"clef", typedAnswers(.9412, .9021, .0788, .0191, .35, .7201, .2201, .0498, .01), 402, 3},
		"llama.cpp adds probabilities to each noul":        {"llamacpp", typedAnswers(.913, .7, .2, .1, 1, .4, .3, .2, .1), 300, 0},
		"llamacpp-jev keeps an alias as its name":          {"llamacpp-jev", typedAnswers(.8, .5, .3, .2, 1.5, .25, .25, .25, .25), 300, 3},
		"Ollama answers typed questions itself":            {"ollama-native", typedAnswers(.88, .61, .29, .10, .75, .5, .3, .15, .05), 322, 0},
		"Ollama gives the next token of a chat model":      {"ollama-labels", questions.Answers{"asked": {Type: questions.YesNo, Probability: .9085, Coverage: .991}}, 420, 1},
		"Ollama forces a chat model into JSON":             {"ollama-verdict", verdict("block"), 700, 40},
		"a server of chat completions is forced into JSON": {"chat-verdict", verdict("confirm"), 650, 22},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := systems[tt.system]
			fake, decider := play(t, s, recorded(t, tt.system, "answers"))
			got, err := decider.Decide(t.Context(), request(t, s.asks...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got.Answers, cmpopts.EquateApprox(0, 0.001)); diff != "" {
				t.Error(diff)
			}
			if got.Model != s.model || got.InputTokens != tt.input || got.OutputTokens != tt.written {
				t.Errorf("result = %+v", got)
			}
			wantAuth := ""
			if s.token != "" {
				wantAuth = "Bearer " + s.token
			}
			for _, c := range fake.recorded() {
				if c.method != http.MethodPost || c.auth != wantAuth {
					t.Errorf("%s with authorization %q", c.method, c.auth)
				}
			}
		})
	}
}

// Each reply but answers is no answer, for a reason of its own.
var refusals = map[string]Reason{
	"jev/an-alias-that-has-moved": ModelMismatch, "jev/bad-request": Refused, "jev/bad-key": Refused, "jev/unknown-model": Refused,
	"jev/too-many-tokens": TooLong, "jev/rate-limited": Overloaded, "jev/overloaded": Overloaded, "jev/internal-error": Unreachable,
	"strands/an-answer-short": BadReply, "strands/not-a-number": BadReply, "strands/strict-window": TooLong, "strands/validation": Refused,
	"strands/crashed": Unreachable,
	"jevos/bad-key":   Refused, "jevos/unknown-model": Refused, "jevos/too-long": TooLong, "jevos/extra-field": Refused,
	"clef/a-failure-with-status-200": BadReply, "clef/answers-marked-as-failed": BadReply, "clef/too-large": TooLong, "clef/daily-quota": Overloaded,
	"clef/inference-failed": Overloaded, "clef/a-refusal-in-a-refusal": Refused, "clef/too-large-in-a-refusal": TooLong, "clef/bad-token": Refused,
	"clef/flash-answers":       ModelMismatch,
	"llamacpp/invalid-request": Refused, "llamacpp/exceeds-context": TooLong, "llamacpp/loading": Overloaded, "llamacpp/no-decision-model": Refused,
	"llamacpp-jev/readout-truncated": Unreachable, "llamacpp-jev/overloaded": Overloaded,
	"ollama-native/not-pulled": Refused, "ollama-native/does-not-fit": TooLong, "ollama-native/too-large": TooLong,
	"ollama-labels/a-label-is-not-listed": LowCoverage, "ollama-labels/hardly-a-label": LowCoverage, "ollama-labels/before-logprobs": BadReply,
	"ollama-labels/cut-without-a-word": TooLong, "ollama-labels/top-logprobs-refused": Refused, "ollama-labels/not-pulled": Refused,
	"ollama-verdict/prose-before-the-JSON": BadReply, "ollama-verdict/another-word": BadReply, "ollama-verdict/cut-in-the-middle": CutReply,
	"ollama-verdict/unloaded": Unreachable,
	"chat-verdict/a-refusal":  BadReply, "chat-verdict/a-tool-call-instead": BadReply, "chat-verdict/filtered": BadReply,
	"chat-verdict/context-length": TooLong, "chat-verdict/quota": Overloaded,
}

func TestNamedSystemsFailClosed(t *testing.T) {
	files, err := filepath.Glob(contracts + "/*/*.http")
	if err != nil {
		t.Fatal(err)
	}
	if want := len(refusals) + len(systems); len(files) != want {
		t.Errorf("%d recorded replies, want %d", len(files), want)
	}
	for at, want := range refusals {
		t.Run(at, func(t *testing.T) {
			name, file, _ := strings.Cut(at, "/")
			s := systems[name]
			_, decider := play(t, s, recorded(t, name, file))
			got, err := decider.Decide(t.Context(), request(t, s.asks...))
			if ReasonOf(err) != want {
				t.Errorf("Decide() = %v, want %s", err, want)
			}
			if diff := cmp.Diff(Result{}, got); diff != "" {
				t.Error("a failure came with a result:", diff)
			}
		})
	}
}

// strandsLike mixes up the answers of requests that overlap, which is a known defect of strands-decider: the offsets of a
// request lie in the engine, and the next request overwrites them before they are read.
type strandsLike struct {
	mu       sync.Mutex
	last     float64
	inFlight atomic.Int32
	overlaps atomic.Int32
}

var refunded = regexp.MustCompile(`refund order ([0-9]+)`)

func (s *strandsLike) handle(w http.ResponseWriter, _ string, body []byte) {
	if s.inFlight.Add(1) > 1 {
		s.overlaps.Add(1)
	}
	defer s.inFlight.Add(-1)
	var n float64
	if found := refunded.FindSubmatch(body); found != nil {
		_, _ = fmt.Sscan(string(found[1]), &n)
	}
	s.mu.Lock()
	s.last = n
	s.mu.Unlock()
	<-time.After(2 * time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(w, `{"model":"strands-decider-2B-hobson-v19","answers":{"asked":{"type":"noul","noul":%v}}}`, s.last/100)
}

func TestStrandsIsAskedOneByOneSoThatAnswersDoNotCross(t *testing.T) {
	crossed := func(inFlight int) (wrong int32, overlaps int32) {
		mixing := &strandsLike{}
		fake := newServer(t, mixing.handle)
		client := must(typed(ServerOptions{BaseURL: fake.URL, Model: systems["strands"].model, Transport: transport(t)}))
		guard := NewGuard(client, GuardOptions{MaxInFlight: inFlight, MaxQueue: 100, MaxQueuePerTenant: 100, Timeout: 10 * time.Second})
		defer guard.Close()
		var all sync.WaitGroup
		var bad atomic.Int32
		for i := range 24 {
			all.Go(func() {
				r := request(t, "asked")
				r.State.UserTurns = []string{fmt.Sprintf("refund order %d", i)}
				got, err := guard.Decide(t.Context(), r)
				if err != nil {
					t.Error(err)
				}
				if got.Answers["asked"].Probability != float64(i)/100 {
					bad.Add(1)
				}
			})
		}
		all.Wait()
		return bad.Load(), mixing.overlaps.Load()
	}
	if wrong, overlaps := crossed(0); wrong != 0 || overlaps != 0 {
		t.Errorf("by default %d answers are wrong and %d requests overlap, want none", wrong, overlaps)
	}
	if wrong, overlaps := crossed(24); wrong == 0 || overlaps == 0 {
		t.Error("the fake does not mix answers up when requests overlap, so the test above shows nothing")
	}
}

// Where the address ends in the name of the model, it is the whole address.
func TestAnAddressThatEndsInTheModelIsTheWholeAddress(t *testing.T) {
	tests := map[string]struct{ base, model, want string }{
		"a plain address":                       {"", "m-1", SystemOnePath},
		"an address with a folder":              {"/judge", "m-1", "/judge" + SystemOnePath},
		"an address that ends in the model":     {"/run/m-1", "m-1", "/run/m-1"},
		"the same with a slash behind":          {"/run/m-1/", "m-1", "/run/m-1"},
		"a model with slashes and an at sign":   {"/run/%40cf/m/one", "@cf/m/one", "/run/@cf/m/one"},
		"an address that ends like the model":   {"/run/xm-1", "m-1", "/run/xm-1" + SystemOnePath},
		"an address that holds it further left": {"/m-1/run", "m-1", "/m-1/run" + SystemOnePath},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			fake := newServer(t, replies(200, strings.Replace(goodNoul, "m-1", tt.model, 1)))
			client := must(typed(ServerOptions{BaseURL: fake.URL + tt.base, Model: tt.model, Transport: transport(t)}))
			if _, err := client.Decide(t.Context(), request(t, "asked")); err != nil {
				t.Fatal(err)
			}
			if got := fake.recorded()[0].path; got != tt.want {
				t.Errorf("asked at %s, want %s", got, tt.want)
			}
		})
	}
}
