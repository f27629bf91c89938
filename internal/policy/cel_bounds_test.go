package policy

import (
	"strings"
	"testing"
)

// An expression makes no more of the arguments than a call may hold, whoever has written it.
func TestAnExpressionMakesNoMoreThanACallMayHold(t *testing.T) {
	grown := func(n int) string {
		return `"aaaaaaaaaaaaaaaa"` + strings.Repeat(`.replace("a", "aaaaaaaaaaaaaaaa")`, n)
	}
	tests := map[string]struct {
		when string
		want Reason
	}{
		"a text is replaced":                  {`args.text.replace("a", "bb") == "bb" + "bb"`, ReasonRule},
		"a text is replaced once":             {`args.text.replace("a", "b", 1) == "ba"`, ReasonRule},
		"texts are joined":                    {`["a", "b"].join("-") == "a-b" && ["a", "b"].join() == "ab"`, ReasonRule},
		"a text is formatted":                 {`"%s of %d".format([args.text, 2]) == "aa of 2"`, ReasonRule},
		"texts are changed and split":         {`" A ".trim().lowerAscii() + "b,c".split(",")[1].upperAscii() == "aC"`, ReasonRule},
		"a text that grows a little":          {grown(3) + `.size() == 65536`, ReasonRule},
		"a text that grows beyond all":        {grown(7) + `.size() > 0`, ReasonRuleFailed},
		"between all letters":                 {grown(3) + `.replace("", "` + strings.Repeat("b", 100) + `").size() > 0`, ReasonRuleFailed},
		"one text joined many times":          {`lists.range(1000).map(i, args.long).join("").size() > 0`, ReasonRuleFailed},
		"a long text between many":            {`lists.range(1000).map(i, "").join(args.long).size() > 0`, ReasonRuleFailed},
		"one text formatted many times":       {`"` + strings.Repeat("%s", 200) + `".format(lists.range(200).map(i, args.long)).size() > 0`, ReasonRuleFailed},
		"a list of one text, formatted":       {`"%s".format([lists.range(1000).map(i, args.long)]).size() > 0`, ReasonRuleFailed},
		"many copies of a text":               {`lists.range(1000).map(i, args.long.lowerAscii()).size() > 0`, ReasonRuleFailed},
		"many lists of the letters of a text": {`lists.range(1000).map(i, args.long.split("")).size() > 0`, ReasonRuleFailed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c, errs := Compile(manyTools(1, ruled(1, test.when)))
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			r := request("tool-0", map[string]any{"text": "aa", "long": strings.Repeat("x", 64<<10)})
			r.Caller.Namespace = "n"
			if v := decide(r, c); v.Outcome != Block || v.Reason != test.want {
				t.Errorf("%s %s, want Block %s", v.Outcome, v.Reason, test.want)
			}
		})
	}
}
