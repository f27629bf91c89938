package strictjson

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseAccepts(t *testing.T) {
	tests := map[string]struct {
		body string
		want any
	}{
		"null":                             {`null`, nil},
		"white space around a scalar":      {" \t\r\n true \n", true},
		"empty containers are not nil":     {`{"a":[],"o":{}}`, map[string]any{"a": []any{}, "o": map[string]any{}}},
		"whole numbers become int64":       {`[0,-7,1.0,1e2,9007199254740992]`, []any{int64(0), int64(-7), int64(1), int64(100), int64(1 << 53)}},
		"other numbers become float64":     {`[0.1,19.99,0.10,1e21,-2.5]`, []any{0.1, 19.99, 0.1, 1e21, -2.5}},
		"both zeros are int64 zero":        {`[-0,-0.0,0e999999999]`, []any{int64(0), int64(0), int64(0)}},
		"escapes are resolved":             {`"\u00e9\n\ud83d\ude00\u0000"`, "é\n😀\x00"},
		"an empty key is a key":            {`{"":1}`, map[string]any{"": int64(1)}},
		"keys may differ in case":          {`{"a":1,"A":2}`, map[string]any{"a": int64(1), "A": int64(2)}},
		"keys equal in different objects":  {`[{"é":1},{"é":{"é":2}}]`, []any{map[string]any{"é": int64(1)}, map[string]any{"é": map[string]any{"é": int64(2)}}}},
		"values may need normalisation":    {`["e\u0301","é"]`, []any{"e\u0301", "é"}},
		"the replacement character itself": {`"\ufffd"`, "\ufffd"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Parse([]byte(tt.body), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("tree (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	small := Limits{MaxBytes: 64, MaxDepth: 2, MaxKeys: 3}
	tests := map[string]struct {
		body string
		want Error
	}{
		"a key twice":                    {`{"a":1,"a":1}`, Error{Code: DuplicateKey, Pointer: "/a", Offset: 7}},
		"a key twice, once escaped":      {`[{"a":1,"\u0061":1}]`, Error{Code: DuplicateKey, Pointer: "/0/a", Offset: 8}},
		"a key twice in a nested object": {`{"x":{"b":1,"b":2}}`, Error{Code: DuplicateKey, Pointer: "/x/b", Offset: 12}},
		"keys equal after NFC":           {`{"é":1,"e\u0301":2}`, Error{Code: KeyNormalization, Pointer: "/e\u0301", Offset: 8}},
		"keys equal after NFKC":          {`{"fi":1, "\ufb01":2}`, Error{Code: KeyNormalization, Pointer: "/\ufb01", Offset: 9}},
		"an ASCII key after its variant": {`{"\uff41":1,"a":2}`, Error{Code: KeyNormalization, Pointer: "/a", Offset: 12}},
		"bytes that are not UTF-8":       {"{\"a\":\"é\xff\"}", Error{Code: InvalidUTF8, Offset: 8}},
		"an encoded surrogate":           {"\"\xed\xa0\x80\"", Error{Code: InvalidUTF8, Offset: 1}},
		"a lone high surrogate":          {`{"a":"x\ud800"}`, Error{Code: InvalidUTF8, Pointer: "/a", Offset: 7}},
		"a lone low surrogate":           {`["\uDFFFabcdef"]`, Error{Code: InvalidUTF8, Pointer: "/0", Offset: 2}},
		"a lone surrogate in a key":      {`{"\ud800\ud800":1}`, Error{Code: InvalidUTF8, Offset: 2}},
		"an array too deep":              {`{"a":[[]]}`, Error{Code: TooDeep, Pointer: "/a/0", Offset: 6}},
		"an object too deep":             {`[[{}]]`, Error{Code: TooDeep, Pointer: "/0/0", Offset: 2}},
		"too many keys over all objects": {`[{"a":1,"b":2},{"a":1, "c":2}]`, Error{Code: TooManyKeys, Pointer: "/1/c", Offset: 23}},
		"a long body":                    {strings.Repeat(" ", 63) + "{}", Error{Code: TooLarge, Offset: 64}},
		"a second value":                 {`{} {}`, Error{Code: TrailingData, Offset: 3}},
		"garbage behind the value":       {`1 #`, Error{Code: TrailingData, Offset: 2}},
		"a whole number beyond doubles":  {`{"n":9007199254740993}`, Error{Code: NumberNotExact, Pointer: "/n", Offset: 5}},
		"an infinite exponent":           {`[ 1e400]`, Error{Code: NumberNotExact, Pointer: "/0", Offset: 2}},
		"NaN":                            {`{"a":NaN}`, Error{Code: NotFinite, Pointer: "/a", Offset: 5}},
		"nan in lower case":              {`[nan]`, Error{Code: NotFinite, Pointer: "/0", Offset: 2}},
		"Infinity":                       {`Infinity`, Error{Code: NotFinite, Offset: 0}},
		"minus Infinity":                 {`[-Infinity]`, Error{Code: NotFinite, Pointer: "/0", Offset: 2}},
		"an empty body":                  {``, Error{Code: Empty, Offset: 0}},
		"only white space":               {" \n", Error{Code: Empty, Offset: 0}},
		"a byte order mark":              {"\ufeff{}", Error{Code: Syntax, Offset: 0}},
		"a trailing comma":               {`[1,]`, Error{Code: Syntax, Offset: 2}},
		"a comment":                      {`[1/**/]`, Error{Code: Syntax, Offset: 2}},
		"a body cut short":               {`{"a":`, Error{Code: Syntax, Pointer: "/a", Offset: 5}},
		"a key that is a number":         {`{1:2}`, Error{Code: Syntax, Pointer: "", Offset: 1}},
		"a closing bracket of the other": {`{"a":1]`, Error{Code: Syntax, Pointer: "", Offset: 6}},
		"a leading zero":                 {`[01]`, Error{Code: Syntax, Pointer: "", Offset: 2}},
		"a control character":            {"[\"a\nb\"]", Error{Code: Syntax, Pointer: "/0", Offset: 3}},
		"single quotes":                  {`{'a':1}`, Error{Code: Syntax, Offset: 1}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Parse([]byte(tt.body), small)
			if got != nil {
				t.Errorf("tree %v beside an error", got)
			}
			checkError(t, err, tt.want)
		})
	}
}

// checkError compares all but the wording, which must be there and short.
func checkError(t *testing.T, err error, want Error) {
	t.Helper()
	var got *Error
	if !errors.As(err, &got) {
		t.Fatalf("error %v, want an *Error", err)
	}
	if got.Detail == "" || len(got.Error()) > 600 {
		t.Errorf("message of %d bytes: %q", len(got.Error()), got.Error())
	}
	want.Detail = got.Detail
	if diff := cmp.Diff(want, *got); diff != "" {
		t.Errorf("error (-want +got):\n%s\n%s", diff, got)
	}
}

func TestParseLimitsAreInclusive(t *testing.T) {
	tests := map[string]struct {
		body   string
		limits Limits
	}{
		"bytes":                  {`[1,2]`, Limits{MaxBytes: 5}},
		"depth":                  {`[[[1]]]`, Limits{MaxDepth: 3}},
		"keys":                   {`{"a":{"b":1}}`, Limits{MaxKeys: 2}},
		"default depth":          {strings.Repeat("[", 32) + strings.Repeat("]", 32), Limits{}},
		"negative means default": {`[{"a":1}]`, Limits{MaxBytes: -1, MaxDepth: -1, MaxKeys: -1}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse([]byte(tt.body), tt.limits); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestParseCapsDepthWhateverIsAsked(t *testing.T) {
	body := strings.Repeat("[", 1<<19) + strings.Repeat("]", 1<<19)
	_, err := Parse([]byte(body), Limits{MaxDepth: math.MaxInt})
	var got *Error
	if !errors.As(err, &got) || got.Code != TooDeep || got.Offset != deepest {
		t.Errorf("error %v, want TooDeep at byte %d", err, deepest)
	}
}

func TestParseSharesNoMemoryWithTheBody(t *testing.T) {
	body := []byte(`{"key":["text",{"k":"v"}]}`)
	got, err := Parse(body, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	clear(body)
	want := map[string]any{"key": []any{"text", map[string]any{"k": "v"}}}
	if diff := cmp.Diff(any(want), got); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}

func TestParseLeavesTheBodyAlone(t *testing.T) {
	for _, body := range []string{`{"a\u0062":["x\n",1.50,{"é":null}]}`, `{"a":1,"a":2}`, `[1,`} {
		data := []byte(body)
		_, _ = Parse(data, Limits{})
		if string(data) != body {
			t.Errorf("body became %q, was %q", data, body)
		}
	}
}

func TestErrorKeepsLongInputShort(t *testing.T) {
	long := strings.Repeat("ü", 100_000)
	tests := map[string]string{
		"a long duplicate key": `{"` + long + `":1,"` + long + `":2}`,
		"a long key and value": `{"` + long + `":{"` + long + `":tru}}`,
		"a long bad literal":   `[t` + long + `]`,
		"a long bad escape":    `["\u` + long + `"]`,
		"a long number":        `[1` + strings.Repeat("7", 100_000) + `]`,
	}
	for name, body := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(body), Limits{})
			var got *Error
			if !errors.As(err, &got) {
				t.Fatalf("error %v, want an *Error", err)
			}
			if n := len(got.Error()); n > 600 || len(got.Pointer) > maxPointer+len("…") {
				t.Errorf("message has %d bytes, pointer %d", n, len(got.Pointer))
			}
		})
	}
}

func TestErrorMessage(t *testing.T) {
	tests := map[string]struct {
		err  Error
		want string
	}{
		"with a pointer and an offset":  {Error{Pointer: "/a\x00", Offset: 3, Detail: "do this"}, `"/a\x00" at byte 3: do this`},
		"with a pointer, from a tree":   {Error{Pointer: "/a", Offset: -1, Detail: "do this"}, `"/a": do this`},
		"with an offset only":           {Error{Offset: 0, Detail: "do this"}, `at byte 0: do this`},
		"of a whole tree, without both": {Error{Offset: -1, Detail: "do this"}, `do this`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tt.err.Error(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
