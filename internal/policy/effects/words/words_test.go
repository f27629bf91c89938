package words_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"mvdan.cc/sh/v3/syntax"

	"gatewright.dev/gatewright/internal/policy/effects/words"
)

func TestLiteral(t *testing.T) {
	tests := map[string]struct {
		text    string
		want    []words.Word
		wantErr error
	}{
		"plain words":                           {text: `ls -la x`, want: texts("ls", "-la", "x")},
		"a backslash hides nothing":             {text: `r\m \-rf`, want: texts("rm", "-rf")},
		"quotes hide nothing":                   {text: `r'm' "-r"f`, want: texts("rm", "-rf")},
		"a continued line is one word":          {text: "r\\\nm", want: texts("rm")},
		"double quotes keep a backslash":        {text: `echo "a\b\\c\"d"`, want: texts("echo", `a\b\c"d`)},
		"single quotes keep all":                {text: `echo '$(rm x)\'`, want: texts("echo", `$(rm x)\`)},
		"an escaped dollar is text":             {text: `echo \$x "\$x"`, want: texts("echo", "$x", "$x")},
		"a glob is marked":                      {text: `a/*`, want: []words.Word{{Text: "a/*", Glob: true}}},
		"a leading glob is marked":              {text: `*x`, want: []words.Word{{Text: "*x", Glob: true, GlobFirst: true}}},
		"a quoted glob is text":                 {text: `'*x' \?`, want: texts("*x", "?")},
		"a lone bracket is a program":           {text: `[ a ]`, want: texts("[", "a", "]")},
		"an empty quoted word is a word":        {text: `''`, want: texts("")},
		"a glob after empty quotes":             {text: `''*`, want: []words.Word{{Text: "*", Glob: true, GlobFirst: true}}},
		"a brace without comma is text":         {text: `HEAD@{1}`, want: texts("HEAD@{1}")},
		"a brace expansion is refused":          {text: `{rm,-rf,/}`, wantErr: words.ErrBraces},
		"a brace sequence is refused":           {text: `{a..z}`, wantErr: words.ErrBraces},
		"ansi quotes are refused":               {text: `$'rm'`, wantErr: words.ErrExpansion},
		"translated quotes are refused":         {text: `$"rm"`, wantErr: words.ErrExpansion},
		"a parameter is refused":                {text: `$x`, wantErr: words.ErrExpansion},
		"a quoted parameter is refused":         {text: `"a$x"`, wantErr: words.ErrExpansion},
		"command substitution is refused":       {text: `$(rm x)`, wantErr: words.ErrExpansion},
		"backquotes are refused":                {text: "`rm x`", wantErr: words.ErrExpansion},
		"arithmetic is refused":                 {text: `$((1+1))`, wantErr: words.ErrExpansion},
		"process substitution is refused":       {text: `<(rm x)`, wantErr: words.ErrExpansion},
		"an extended glob is refused":           {text: `@(a|b)`, wantErr: words.ErrExpansion},
		"a path of a program is refused":        {text: `=ls`, wantErr: words.ErrExpansion},
		"a way up from home is refused":         {text: `~/../x`, wantErr: words.ErrTilde},
		"a tilde after empty quotes is text":    {text: `''~/..`, want: texts("~/..")},
		"a comment with a backslash at its end": {text: "ls # x\\\nrm y", wantErr: words.ErrComment},
		"a backslash behind a # of a word":      {text: "curl 'https://a/#b' \\\n-s x#y", want: texts("curl", "https://a/#b", "-s", "x#y")},
		"a comment at once, with a backslash":   {text: "#x\\\nrm y", wantErr: words.ErrComment},
		"a comment behind a continued line":     {text: "ls \\\n#x\\\nrm y", wantErr: words.ErrComment},
		"a comment behind a semicolon":          {text: "ls;#x\\\nrm y", wantErr: words.ErrComment},
		"a comment behind a quote, in doubt":    {text: "ls 'a'#x \\\ny", wantErr: words.ErrComment},
		"a plain comment":                       {text: "ls x # \\n", want: texts("ls", "x")},
		"an open quote is refused":              {text: `ls 'x`, wantErr: words.ErrSyntax},
		"a carriage return is refused":          {text: "ls\r", wantErr: words.ErrCharacters},
		"a NUL is refused":                      {text: "ls\x00", wantErr: words.ErrCharacters},
		"a no-break space is refused":           {text: "ls\u00a0x", wantErr: words.ErrCharacters},
		"an ideographic space is refused":       {text: "ls\u3000x", wantErr: words.ErrCharacters},
		"a right-to-left mark is refused":       {text: "ls \u202ex", wantErr: words.ErrCharacters},
		"a zero-width space is refused":         {text: "l\u200bs", wantErr: words.ErrCharacters},
		"a broken character is refused":         {text: "ls \xff", wantErr: words.ErrCharacters},
		"a long text is refused":                {text: strings.Repeat("x", words.MaxLength+1), wantErr: words.ErrTooLong},
		"a deep text is refused":                {text: strings.Repeat("(", 1001), wantErr: words.ErrNested},
		"too many square brackets are refused":  {text: "ls " + strings.Repeat("a[", 1001), wantErr: words.ErrNested},
		"backquotes count as depth as well":     {text: strings.Repeat("`", 1001), wantErr: words.ErrNested},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := literals(test.text)
			if !errors.Is(err, test.wantErr) {
				t.Fatalf("error = %v, want %v", err, test.wantErr)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("words (-want +got):\n%s", diff)
			}
		})
	}
}

func texts(texts ...string) []words.Word {
	var out []words.Word
	for _, text := range texts {
		out = append(out, words.Word{Text: text})
	}
	return out
}

func literals(text string) ([]words.Word, error) {
	file, err := words.Parse(text)
	if err != nil {
		return nil, err
	}
	var out []words.Word
	for _, word := range file.Stmts[0].Cmd.(*syntax.CallExpr).Args {
		w, err := words.Literal(word)
		if err != nil {
			return nil, err
		}
		out = append(out, w)
	}
	return out, nil
}
