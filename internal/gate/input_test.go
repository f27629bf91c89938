package gate

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/policy"
)

func TestBadInputIsNoDecision(t *testing.T) {
	f := newFixture(t)
	good := string(body(t, f.call("item.get")))
	replace := func(old, with string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("%s is not in %s", old, good)
		}
		return strings.Replace(good, old, with, 1)
	}
	tests := map[string]struct {
		body   string
		status int
		code   string
		field  string
	}{
		"nothing":                            {"", 400, "Empty", ""},
		"no JSON":                            {"hello", 400, "Syntax", ""},
		"trailing data":                      {good + "{}", 400, "TrailingData", ""},
		"a duplicate key":                    {replace(`"uid":`, `"uid":"x","uid":`), 400, "DuplicateKey", "/request/uid"},
		"a duplicate key in the arguments":   {replace(`"id":"7"`, `"id":"7","id":"8"`), 400, "DuplicateKey", "/request/arguments/id"},
		"a key in another case":              {replace(`"uid":`, `"UID":`), 400, "KeyCase", "/request/UID"},
		"arguments equal but for capitals":   {replace(`"id":"7"`, `"id":"7","ID":"8"`), 400, "KeyNormalization", "/request/arguments/id"},
		"keys equal after normalisation":     {replace(`"id":"7"`, "\"\u00e9\":1,\"e\u0301\":2"), 400, "KeyNormalization", ""},
		"an unknown field":                   {replace(`"uid":`, `"surprise":1,"uid":`), 400, "UnknownField", "/request/surprise"},
		"NaN":                                {replace(`"7"`, `NaN`), 400, "NotFinite", ""},
		"infinity":                           {replace(`"7"`, `1e400`), 400, "NumberNotExact", "/request/arguments/id"},
		"a number that a double would round": {replace(`"7"`, `9007199254740993`), 400, "NumberNotExact", "/request/arguments/id"},
		"invalid UTF-8":                      {replace(`"7"`, "\"\xff\""), 400, "InvalidUTF8", ""},
		"a lone surrogate":                   {replace(`"7"`, `"\ud800"`), 400, "InvalidUTF8", ""},
		"too deep":                           {replace(`"7"`, strings.Repeat("[", 40)+strings.Repeat("]", 40)), 400, "TooDeep", ""},
		"too many keys":                      {replace(`"id":"7"`, manyKeys(5000)), 400, "TooManyKeys", ""},
		"too large":                          {replace(`"7"`, `"`+strings.Repeat("x", 1<<20)+`"`), 413, "TooLarge", ""},
		"arguments that are a list":          {replace(`{"id":"7"}`, `[]`), 400, "WrongType", "/request/arguments"},
		"arguments that are null":            {replace(`{"id":"7"}`, `null`), 400, "", "/request/arguments"},
		"no arguments":                       {replace(`"arguments":{"id":"7"},`, ``), 400, "InvalidField", "/request/arguments"},
		"no request":                         {`{"apiVersion":"` + review.APIVersion + `","kind":"` + review.Kind + `"}`, 400, "InvalidField", "/request"},
		"another version":                    {replace("v1alpha1", "v1"), 400, "InvalidField", "/apiVersion"},
		"another kind":                       {replace(`"kind":"ToolCallReview"`, `"kind":"AdmissionReview"`), 400, "InvalidField", "/kind"},
		"no tool":                            {replace(`"name":"item.get"`, `"name":""`), 400, "InvalidField", "/request/tool/name"},
		"a tool name that is a novel":        {replace(`"item.get"`, `"`+strings.Repeat("x", 300)+`"`), 400, "InvalidField", "/request/tool/name"},
		"a role nobody has":                  {replace(`"session":"s"`, `"messages":[{"role":"root","content":"x"}]`), 400, "InvalidField", "/request/context/messages/0/role"},
		"a uid that is no UUIDv7":            {replace(f.uidOf(good), "00000000-0000-4000-8000-000000000000"), 400, "InvalidField", "/request/uid"},
		"a uid of last week":                 {replace(f.uidOf(good), uid(f.clock.Now().Add(-7*24*time.Hour))), 400, "StaleUid", "/request/uid"},
		"a uid of tomorrow":                  {replace(f.uidOf(good), uid(f.clock.Now().Add(24*time.Hour))), 400, "StaleUid", "/request/uid"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before := len(f.records.records)
			w := post(f.gate, review.Path, []byte(test.body))
			var e review.Error
			if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil {
				t.Fatalf("no error object: %s", w.Body)
			}
			if w.Code != test.status || test.code != "" && e.Code != test.code || e.Message == "" || e.ID == "" {
				t.Errorf("got HTTP %d %+v, want %d %s", w.Code, e, test.status, test.code)
			}
			if test.field != "" && e.Field != test.field {
				t.Errorf("field %s, want %s", e.Field, test.field)
			}
			if len(f.records.records) != before || f.decider.count() > 0 {
				t.Error("something happened all the same")
			}
		})
	}
}

func (f *fixture) uidOf(body string) string {
	_, after, _ := strings.Cut(body, `"uid":"`)
	return after[:36]
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"k` + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + time.Duration(i).String() + `":1`)
	}
	return b.String()
}

func TestBadRequests(t *testing.T) {
	f := newFixture(t)
	good := body(t, f.call("item.get"))
	request := func(method, target, contentType string) *http.Request {
		r := httptest.NewRequest(method, target, strings.NewReader(string(good)))
		r.Header.Set("Content-Type", contentType)
		return r
	}
	tests := map[string]struct {
		request *http.Request
		status  int
		code    Code
	}{
		"another method":       {request(http.MethodPut, review.Path, "application/json"), 405, CodeMethodNotAllowed},
		"another media type":   {request(http.MethodPost, review.Path, "text/plain"), 415, CodeUnsupportedMediaType},
		"a time-out of words":  {request(http.MethodPost, review.Path+"?timeout=soon", "application/json"), 400, CodeBadRequest},
		"a negative time-out":  {request(http.MethodPost, review.Path+"?timeout=-1s", "application/json"), 400, CodeBadRequest},
		"two time-outs":        {request(http.MethodPost, review.Path+"?timeout=1s&timeout=2s", "application/json"), 400, CodeBadRequest},
		"an unknown parameter": {request(http.MethodPost, review.Path+"?dryRun=true", "application/json"), 400, CodeBadRequest},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			f.gate.ServeHTTP(w, test.request)
			if w.Code != test.status || !strings.Contains(w.Body.String(), string(test.code)) {
				t.Errorf("HTTP %d %s, want %d %s", w.Code, w.Body, test.status, test.code)
			}
		})
	}
}

func TestAPanicIsNoDecision(t *testing.T) {
	var log strings.Builder
	f := newFixture(t, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	f.gate.options.Recorder = panicking{}
	w := post(f.gate, review.Path, body(t, f.call("item.get")))
	if w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "secret cause") {
		t.Errorf("HTTP %d %s", w.Code, w.Body)
	}
	if got := log.String(); !strings.Contains(got, "of type string") || strings.Contains(got, "secret cause") {
		t.Errorf("the log says %s", got)
	}
}

type panicking struct{}

func (panicking) Append(context.Context, *audit.Record) error { panic("secret cause") }
func (panicking) Enqueue(*audit.Record) error                 { panic("secret cause") }
func (panicking) Available() bool                             { return true }

func TestTokens(t *testing.T) {
	write := func(content string, mode os.FileMode) string {
		path := filepath.Join(t.TempDir(), "tokens.csv")
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const good = "0123456789abcdef,system:serviceaccount:shop:agent,1,\"a,b\"\n# comment\nfedcba9876543210,system:serviceaccount:shop:other,2\n"
	tokens, err := LoadTokens(write(good, 0o600))
	if err != nil || len(tokens) != 2 {
		t.Fatalf("%v %v", tokens, err)
	}
	refused := map[string]struct {
		path, want string
	}{
		"readable by others":         {write(good, 0o644), "chmod 600"},
		"empty":                      {write("", 0o600), "holds no token"},
		"a short token":              {write("short,system:serviceaccount:shop:agent,1\n", 0o600), "at least 16"},
		"a user who is no account":   {write("0123456789abcdef,admin,1\n", 0o600), "line 1"},
		"an account with a slash":    {write("0123456789abcdef,system:serviceaccount:shop:a/b,1\n", 0o600), "no service account"},
		"a third part of a name":     {write("0123456789abcdef,system:serviceaccount:shop:a:b,1\n", 0o600), "no service account"},
		"an account without a name":  {write("0123456789abcdef,system:serviceaccount:shop:,1\n", 0o600), "no service account"},
		"the same token twice":       {write(good+"0123456789abcdef,system:serviceaccount:shop:x,3\n", 0o600), "twice"},
		"too few fields":             {write("0123456789abcdef,system:serviceaccount:shop:agent\n", 0o600), "token,user,uid"},
		"a file that does not exist": {filepath.Join(t.TempDir(), "none"), "no such file"},
	}
	for name, test := range refused {
		t.Run(name, func(t *testing.T) {
			if _, err := LoadTokens(test.path); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
	headers := map[string]struct {
		values []string
		want   policy.Caller
	}{
		"the right token":     {[]string{"Bearer 0123456789abcdef"}, policy.Caller{Namespace: "shop", ServiceAccount: "agent"}},
		"another case":        {[]string{"bearer fedcba9876543210"}, policy.Caller{Namespace: "shop", ServiceAccount: "other"}},
		"no token":            {nil, policy.Caller{}},
		"a wrong token":       {[]string{"Bearer 0123456789abcdeF"}, policy.Caller{}},
		"another scheme":      {[]string{"Basic 0123456789abcdef"}, policy.Caller{}},
		"two headers":         {[]string{"Bearer 0123456789abcdef", "Bearer 0123456789abcdef"}, policy.Caller{}},
		"a token with spaces": {[]string{"Bearer 0123456789abcdef x"}, policy.Caller{}},
	}
	for name, test := range headers {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/", nil)
			r.Header["Authorization"] = test.values
			got, err := tokens.Identify(t.Context(), r)
			if got != test.want || (err == nil) != (test.want != policy.Caller{}) {
				t.Errorf("got %v %v", got, err)
			}
		})
	}
}

func TestAnUnknownCallerIsRefused(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.Identify = Tokens{} })
	w := post(f.gate, review.Path, body(t, f.call("item.get")))
	if w.Code != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("HTTP %d %v", w.Code, w.Header())
	}
}

func FuzzReview(f *testing.F) {
	fix := newFixture(&testing.T{})
	fix.decider.err = nil
	for _, tool := range []string{"item.get", "item.update", "item.delete"} {
		b, err := json.Marshal(review.ToolCallReview{APIVersion: review.APIVersion, Kind: review.Kind, Request: fix.call(tool)})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		w := post(fix.gate, review.Path, b)
		if w.Code != http.StatusOK {
			var e review.Error
			if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || e.Code == "" || w.Code >= 500 {
				t.Fatalf("HTTP %d %s", w.Code, w.Body)
			}
			return
		}
		var out review.ToolCallReview
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || out.Response == nil || out.Response.Reason == "" {
			t.Fatalf("a decision that says nothing: %s", w.Body)
		}
	})
}
