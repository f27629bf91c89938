package strictjson

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type turn struct {
	Role string `json:"role"`
	Text string `json:"text"`
}

type common struct {
	UID string `json:"uid"`
}

type envelope struct {
	common
	Tool       string            `json:"tool"`
	OnBehalfOf *string           `json:"onBehalfOf,omitempty"`
	Arguments  Object            `json:"arguments"`
	Turns      []turn            `json:"turns"`
	Facts      map[string]any    `json:"facts"`
	Labels     map[string]string `json:"labels"`
	Extra      any               `json:"extra"`
	Attempt    int8              `json:"attempt"`
	Count      uint16            `json:"count"`
	Score      float64           `json:"score"`
	DryRun     bool              `json:"dryRun"`
	At         time.Time         `json:"at"`
	Nested     *struct {
		Peer netip.Addr        `json:"peer"`
		Tree map[string][]turn `json:"tree"`
	} `json:"nested"`
	Untagged string
	Ignored  string `json:"-"`
	hidden   string
}

var exported = cmp.AllowUnexported(envelope{})

func TestDecodeFills(t *testing.T) {
	alice := "alice"
	tests := map[string]struct {
		body string
		want envelope
	}{
		"nothing":                    {`{}`, envelope{}},
		"an embedded field":          {`{"uid":"u"}`, envelope{common: common{UID: "u"}}},
		"a pointer":                  {`{"onBehalfOf":"alice"}`, envelope{OnBehalfOf: &alice}},
		"null in a pointer and any":  {`{"onBehalfOf":null,"extra":null}`, envelope{}},
		"a free object":              {`{"arguments":{"a":1,"b":[1.5,{"c":null}]}}`, envelope{Arguments: Object{"a": int64(1), "b": []any{1.5, map[string]any{"c": nil}}}}},
		"an empty object is not nil": {`{"arguments":{}}`, envelope{Arguments: Object{}}},
		"free keys in any case":      {`{"arguments":{"Tool":1,"tool":2},"facts":{"X":1,"x":2}}`, envelope{Arguments: Object{"Tool": int64(1), "tool": int64(2)}, Facts: map[string]any{"X": int64(1), "x": int64(2)}}},
		"structs in a slice":         {`{"turns":[{"role":"user","text":"hi"},{}]}`, envelope{Turns: []turn{{Role: "user", Text: "hi"}, {}}}},
		"typed maps":                 {`{"labels":{"a":"b"}}`, envelope{Labels: map[string]string{"a": "b"}}},
		"any holds the tree":         {`{"extra":[1,1.5]}`, envelope{Extra: []any{int64(1), 1.5}}},
		"numbers at their bounds":    {`{"attempt":-128,"count":65535,"score":3}`, envelope{Attempt: -128, Count: 65535, Score: 3}},
		"a fraction":                 {`{"score":0.25,"dryRun":true}`, envelope{Score: 0.25, DryRun: true}},
		"text that a type reads":     {`{"at":"2026-01-02T03:04:05Z"}`, envelope{At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}},
		"a field without a tag":      {`{"Untagged":"x"}`, envelope{Untagged: "x"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := envelope{Tool: "left over", Ignored: "left over", hidden: "left over"}
			if err := Decode([]byte(tt.body), Limits{}, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got, exported, cmp.AllowUnexported(common{})); diff != "" {
				t.Errorf("value (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeFillsNestedStructs(t *testing.T) {
	var got envelope
	if err := Decode([]byte(`{"nested":{"peer":"10.0.0.1","tree":{"a":[{"text":"x"}]}}}`), Limits{}, &got); err != nil {
		t.Fatal(err)
	}
	if got.Nested == nil || got.Nested.Peer != netip.MustParseAddr("10.0.0.1") {
		t.Errorf("nested is %+v", got.Nested)
	}
	if diff := cmp.Diff(map[string][]turn{"a": {{Text: "x"}}}, got.Nested.Tree); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}

func TestDecodeRefuses(t *testing.T) {
	tests := map[string]struct {
		body       string
		want       Error
		wantDetail string
	}{
		"an unknown field":            {`{ "zzzzzzzz":1}`, Error{Code: UnknownField, Pointer: "/zzzzzzzz", Offset: 2}, `field "zzzzzzzz" is unknown, leave it out`},
		"a slip of a known field":     {`{"argumets":{}}`, Error{Code: UnknownField, Pointer: "/argumets", Offset: 1}, `field "argumets" is unknown, did you mean "arguments"`},
		"snake case":                  {`{"on_behalf_of":"a"}`, Error{Code: UnknownField, Pointer: "/on_behalf_of", Offset: 1}, `field "on_behalf_of" is unknown, did you mean "onBehalfOf"`},
		"the first of two unknown":    {`{"yyyyyyyy":1,"xxxxxxxx":1}`, Error{Code: UnknownField, Pointer: "/xxxxxxxx", Offset: 14}, `field "xxxxxxxx" is unknown, leave it out`},
		"an ignored field":            {`{"Ignored":"x"}`, Error{Code: UnknownField, Pointer: "/Ignored", Offset: 1}, `field "Ignored" is unknown, leave it out`},
		"an unexported field":         {`{"hidden":"x"}`, Error{Code: UnknownField, Pointer: "/hidden", Offset: 1}, `field "hidden" is unknown, leave it out`},
		"another case":                {`{"tool":"a","Tool":"b"}`, Error{Code: KeyCase, Pointer: "/Tool", Offset: 12}, `key "Tool" differs from "tool" in case only, write "tool"`},
		"a field twice, once escaped": {`{"onBehalfOf":null,"on\u0042ehalfO\u0066":null}`, Error{Code: DuplicateKey, Pointer: "/onBehalfOf", Offset: 19}, `key appears twice in one object, send it once`},
		"another case, nested":        {`{"turns":[{},{"role":"a", "TEXT":"b"}]}`, Error{Code: KeyCase, Pointer: "/turns/1/TEXT", Offset: 26}, `key "TEXT" differs from "text" in case only, write "text"`},
		"a look-alike":                {`{"ｔool":"a"}`, Error{Code: KeyNormalization, Pointer: "/ｔool", Offset: 1}, `key "ｔool" only looks like "tool", write "tool"`},
		"an unknown field, nested":    {`{"nested":{"tree":{"a/b":[{"rule":1}]}}}`, Error{Code: UnknownField, Pointer: "/nested/tree/a~1b/0/rule", Offset: 27}, `field "rule" is unknown, did you mean "role"`},
		"an array for the whole":      {` []`, Error{Code: WrongType, Offset: 1}, `value is an array, send an object`},
		"null for the whole":          {`null`, Error{Code: WrongType, Offset: 0}, `value is null, send an object or leave the field out`},
		"a number for text":           {`{"tool": 5}`, Error{Code: WrongType, Pointer: "/tool", Offset: 9}, `value is a number, send a string`},
		"null for a free object":      {`{"arguments":null}`, Error{Code: WrongType, Pointer: "/arguments", Offset: 13}, `value is null, send an object or leave the field out`},
		"text for a free object":      {`{"arguments":"{}"}`, Error{Code: WrongType, Pointer: "/arguments", Offset: 13}, `value is a string, send an object`},
		"an object for a slice":       {`{"turns":{}}`, Error{Code: WrongType, Pointer: "/turns", Offset: 9}, `value is an object, send an array`},
		"text for a bool":             {`{"dryRun":"true"}`, Error{Code: WrongType, Pointer: "/dryRun", Offset: 10}, `value is a string, send true or false`},
		"a bool for a number":         {`{"score":true}`, Error{Code: WrongType, Pointer: "/score", Offset: 9}, `value is true or false, send a number`},
		"a fraction for an integer":   {`{"attempt":1.5}`, Error{Code: WrongType, Pointer: "/attempt", Offset: 11}, `value is a number, send a whole number within ±2^53`},
		"an integer that overflows":   {`{"attempt":128}`, Error{Code: WrongType, Pointer: "/attempt", Offset: 11}, `number is out of range, send one that fits int8`},
		"an unsigned that overflows":  {`{"count":65536}`, Error{Code: WrongType, Pointer: "/count", Offset: 9}, `number is out of range, send one that fits uint16`},
		"a negative unsigned":         {`{"count":-1}`, Error{Code: WrongType, Pointer: "/count", Offset: 9}, `number is out of range, send one that fits uint16`},
		"text that a type refuses":    {`{"at":"secret"}`, Error{Code: WrongType, Pointer: "/at", Offset: 6}, `text is not a valid Time, correct it`},
		"a number for text of a type": {`{"at":5}`, Error{Code: WrongType, Pointer: "/at", Offset: 6}, `value is a number, send a string`},
		"a wrong value in a map":      {`{"labels":{"b":"x","a":1}}`, Error{Code: WrongType, Pointer: "/labels/a", Offset: 23}, `value is a number, send a string`},
		"what Parse refuses":          {`{"arguments":{"n":9007199254740993}}`, Error{Code: NumberNotExact, Pointer: "/arguments/n", Offset: 18}, `number is not exactly what a double can hold, send it as a string or with fewer digits`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			before := envelope{Tool: "kept", Labels: map[string]string{"kept": "kept"}}
			got := before
			err := Decode([]byte(tt.body), Limits{}, &got)
			checkError(t, err, tt.want)
			if !strings.HasSuffix(err.Error(), tt.wantDetail) {
				t.Errorf("message %q, want it to end in %q", err, tt.wantDetail)
			}
			if diff := cmp.Diff(before, got, exported, cmp.AllowUnexported(common{})); diff != "" {
				t.Errorf("target changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestDecodeNamesUnicodeCaseVariants(t *testing.T) {
	var got struct {
		Key string `json:"key"`
	}
	err := Decode([]byte("{\"\u212aey\":\"\"}"), Limits{}, &got) // the Kelvin sign folds to k
	checkError(t, err, Error{Code: KeyCase, Pointer: "/\u212aey", Offset: 1})
}

func TestFillGivesWhatDecodeGives(t *testing.T) {
	body := []byte(`{"uid":"u","arguments":{"a":[1,2.5]},"turns":[{"role":"user"}]}`)
	tree, err := Parse(body, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var filled, decoded envelope
	if err := Fill(tree, &filled); err != nil {
		t.Fatal(err)
	}
	if err := Decode(body, Limits{}, &decoded); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decoded, filled, exported, cmp.AllowUnexported(common{})); diff != "" {
		t.Errorf("value (-Decode +Fill):\n%s", diff)
	}
	checkError(t, Fill(map[string]any{"tool": int64(1)}, &filled), Error{Code: WrongType, Pointer: "/tool", Offset: -1})
}

func TestDecodeRefusesTargetsThatItCannotFillExactly(t *testing.T) {
	type list struct {
		Next *list  `json:"next"`
		Raw  []byte `json:"raw"`
	}
	tests := map[string]struct {
		target any
		want   string
	}{
		"nil":                        {nil, "strictjson: target must be a pointer that is not nil"},
		"a value":                    {envelope{}, "strictjson: target must be a pointer that is not nil"},
		"a nil pointer":              {(*envelope)(nil), "strictjson: target must be a pointer that is not nil"},
		"bytes, deep in a type":      {new(list), `strictjson: field "raw": type []uint8 cannot be filled from JSON`},
		"a single precision float":   {new(float32), "strictjson: type float32 cannot be filled from JSON"},
		"a channel":                  {new(chan int), "strictjson: type chan int cannot be filled from JSON"},
		"an interface":               {new(fmt.Stringer), "strictjson: type fmt.Stringer cannot be filled from JSON"},
		"a map with other keys":      {new(map[int]string), "strictjson: type map[int]string cannot be filled from JSON"},
		"a type with its own parser": {new([]json.RawMessage), "strictjson: type json.RawMessage reads JSON by itself"},
		"the option string": {new(struct {
			A int `json:"a,string"`
		}), "strictjson: field struct { A int \"json:\\\"a,string\\\"\" }.A: option string is not supported"},
		"two fields of one name": {new(struct {
			common
			ID string `json:"uid"`
		}), `has two fields named "uid"`},
		"an embedded pointer": {new(struct{ *common }), "embeds *strictjson.common, which needs a name"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for range 2 { // the second answer comes from the cache
				err := Decode([]byte(`{}`), Limits{}, tt.target)
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("error %v, want %q", err, tt.want)
				}
			}
		})
	}
}

func TestDecodeInParallel(t *testing.T) {
	body := []byte(`{"uid":"u","arguments":{"é":[1,2.5]},"turns":[{"role":"user"}]}`)
	want, err := Digest(map[string]any{"é": []any{int64(1), 2.5}})
	if err != nil {
		t.Fatal(err)
	}
	type fresh envelope // a type that no other test has prepared
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				var got fresh
				if err := Decode(body, Limits{}, &got); err != nil {
					t.Error(err)
				}
				if d, err := Digest(got.Arguments); err != nil || d != want {
					t.Errorf("digest %q, error %v, want %q", d, err, want)
				}
			}
		})
	}
	wg.Wait()
}

func TestDistance(t *testing.T) {
	tests := map[string]struct {
		a, b string
		want int
	}{
		"equal":        {"tool", "tool", 0},
		"empty":        {"", "abc", 3},
		"replaced":     {"tool", "tosl", 1},
		"inserted":     {"tool", "toool", 1},
		"all together": {"kitten", "sitting", 3},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := distance(tt.a, tt.b); got != tt.want {
				t.Errorf("distance is %d, want %d", got, tt.want)
			}
			if got := distance(tt.b, tt.a); got != tt.want {
				t.Errorf("distance back is %d, want %d", got, tt.want)
			}
		})
	}
}
