package strictjson

import (
	"errors"
	"reflect"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

var seeds = []string{
	``, ` `, `null`, `-0`, `-0.0`, `0.1`, `1e21`, `1e400`, `1e999999999`, `9007199254740993`, `NaN`, `-Infinity`,
	`{"a":1,"a":2}`, `{"é":1,"e\u0301":2}`, `{"fi":1,"\ufb01":2}`, `"\ud800"`, `"\ud83d\ude00"`, "\"\xff\"", "\ufeff{}",
	`{} {}`, `[1,]`, `[[[[[[]]]]]]`, `{"😀":1,"\ue000":2,"\u0000":"\u001f\u2028\/"}`, `{"":{"":[{"":0.5}]}}`, `{"a":1]`, `nul`, `"`,
	`{"uid":"u","tool":"t","arguments":{"n":1.5},"turns":[{"role":"user","text":"x"}],"at":"2026-01-02T03:04:05Z"}`,
	`{"Tool":"t"}`, `{"argumets":{}}`, `{"turns":[{"TEXT":1}]}`, `{"arguments":null}`, `{"nested":{"tree":{"a/~b":[{"x":1}]}}}`,
}

func FuzzParse(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if checkRoundTrip(t, body) {
			if !jsontext.Value(body).IsValid() {
				t.Fatal("accepted what jsontext refuses")
			}
			return
		}
		_, err := Parse(body, Limits{})
		got := checkAnyError(t, err, int64(len(body)))
		if got.Code == Syntax && jsontext.Value(body).IsValid() {
			t.Fatalf("called a syntax error what is JSON: %v", got)
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		before := envelope{Tool: "kept"}
		got := before
		if err := Decode(body, Limits{}, &got); err != nil {
			checkAnyError(t, err, int64(len(body)))
			if !reflect.DeepEqual(before, got) {
				t.Fatal("target changed beside an error")
			}
			return
		}
		tree, err := Parse(body, Limits{})
		if err != nil {
			t.Fatalf("decoded what Parse refuses: %v", err)
		}
		arguments, present := tree.(map[string]any)["arguments"]
		if present != (got.Arguments != nil) {
			t.Fatal("arguments are nil though present, or the other way round")
		}
		if present && digestOf(t, arguments) != digestOf(t, got.Arguments) {
			t.Fatal("arguments differ from the tree's")
		}
	})
}

func digestOf(t *testing.T, tree any) string {
	t.Helper()
	d, err := Digest(tree)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func checkAnyError(t *testing.T, err error, size int64) *Error {
	t.Helper()
	var got *Error
	if !errors.As(err, &got) {
		t.Fatalf("error %v, want an *Error", err)
	}
	if got.Code == "" || got.Detail == "" || got.Offset < 0 || got.Offset > size {
		t.Fatalf("incomplete error %#v", got)
	}
	if len(got.Pointer) > maxPointer+len("…") || len(got.Detail) > 400 {
		t.Fatalf("error repeats too much of the input: %v", got)
	}
	return got
}
