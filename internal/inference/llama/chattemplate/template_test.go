package chattemplate

import (
	"errors"
	"strings"
	"testing"
)

func conversation() Conversation {
	return Conversation{Messages: []Message{{Role: "user", Content: "Judge.\n\nMARK "}}, BOS: "<s>", EOS: "</s>"}
}

// What is wanted was written by the reference implementation of the language, with trim_blocks and lstrip_blocks set.
func TestRender(t *testing.T) {
	tests := map[string]struct{ template, want string }{
		"a turn with a header and an end": {
			`{% for m in messages %}{{'<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`,
			"<|im_start|>user\nJudge.\n\nMARK <|im_end|>\n<|im_start|>assistant\n",
		},
		"a system message that is there by default": {
			`{% for m in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ 'sys;' }}{% endif %}{{ m.role }}{% endfor %}`,
			"sys;user",
		},
		"no thinking aloud": {
			"{%- if enable_thinking is defined and enable_thinking is false %}\n    {{- '<think>\\n\\n</think>\\n\\n' }}\n{%- endif %}",
			"<think>\n\n</think>\n\n",
		},
		"a name for the day that needs no clock": {
			`{% if not date is defined %}{% if strftime_now is defined %}{% set date = strftime_now("%d") %}{% else %}{% set date = "26 Jul 2024" %}{% endif %}{% endif %}{{ date }}`,
			"26 Jul 2024",
		},
		"branches for tools and images that are never taken": {
			`{% if tools %}{{ tools | tojson }}{{ {'a': 1} }}{{ 2 ** 3 }}{% endif %}{% for m in messages %}{% if m.content is string %}{{ m.content | trim }}{% else %}{{ m.content[0]['text'] }}{% endif %}{% endfor %}`,
			"Judge.\n\nMARK",
		},
		"a namespace that a loop writes to": {
			`{% set ns = namespace(n=0, last=messages|length - 1) %}{% for m in messages[::-1] %}{% set ns.n = ns.n + 5 %}{% set gone = 1 %}{% endfor %}{{ ns.n }}{{ ns.last }}{{ gone }}`,
			"50",
		},
		"slices and indexes from the end": {
			`{% set a = ['x', 'y', 'z'] %}{{ a[-1] }}{{ a[1:][0] }}{{ a[:-1][-1] }}{{ a[::-1][0] }}{{ a[7:] | length }}`,
			"zyyz0",
		},
		"operators in their order": {
			`{{ 'a' ~ 1 + 2 ~ 'b' }}{{ 'yes' if not 1 == 2 and 'x' in 'xyz' and 'q' not in ['a'] else 'no' }}{{ 7 % 4 }}{{ -1 + 3 }}`,
			"a3byes32",
		},
		"methods of texts": {
			`{{ '  ab '.strip() }}{{ 'a</t>b'.split('</t>')[-1] }}{{ '\nx\n'.lstrip('\n') }}{{ 'x'.startswith('x') and 'y' }}{{ 'aXa'.replace('a', '-') }}`,
			"abbx\ny-X-",
		},
		"white space around tags": {
			"  {% if true %}\n  a\n    {% for m in messages %}\n  {{ m.role }}{{ '!' }} {# note #} x\n    {% endfor %}\n" +
				"  {%- if false %} no {% else -%}   b   {%+ if true %}c{% endif %} {% endif %}\n{% endif %}\n  {# alone #}\nd {{- ' e ' -}}   f\n",
			"  a\n  user!  x\nb   c d e f",
		},
		"a closing tag inside of a text": {`{{ '%}' + "}}" }}`, "%}}}"},
		"the first and the last token":   {`{{ bos_token }}{{ eos_token }}`, "<s></s>"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			template, err := Parse(tc.template)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				got, err := template.Render(conversation())
				if err != nil || got != tc.want {
					t.Errorf("got %q and %v, want %q", got, err, tc.want)
				}
			}
		})
	}
}

func TestWhatIsNotKnownIsRefused(t *testing.T) {
	loop := strings.Repeat("{% for a in [1,2,3,4,5,6,7,8,9,10] %}", 8) + "x" + strings.Repeat("{% endfor %}", 8)
	for name, template := range map[string]string{
		"a tag":                           "{% macro x() %}{% endmacro %}",
		"a tag that is not closed":        "{{ 'a'",
		"a text that is not closed":       "{{ 'a }}",
		"an if that is not closed":        "{% if true %}",
		"a for that is closed by another": "{% for m in messages %}{% endif %}",
		"an else without an if":           "{% else %}",
		"a filter":                        "{{ messages | tojson }}",
		"a function":                      "{{ strftime_now('%d') }}",
		"a method":                        "{{ 'a'.title() }}",
		"a test":                          "{{ 1 is odd }}",
		"an operator":                     "{{ 2 ** 3 }}",
		"a list that is printed":          "{{ messages }}",
		"a sum of a text and a number":    "{{ 'a' + 1 }}",
		"a loop over a text":              "{% for c in 'abc' %}{% endfor %}",
		"a loop with two variables":       "{% for a, b in messages %}{% endfor %}",
		"a refusal of its own":            "{{ raise_exception('roles must alternate') }}",
		"a member of what is not there":   "{{ tools.first }}",
		"an endless amount of work":       loop,
		"an expression without an end":    "{{ " + strings.Repeat("(", 5000) + " }}",
		"tags without an end":             strings.Repeat("{% if true %}", 5000),
	} {
		t.Run(name, func(t *testing.T) {
			parsed, err := Parse(template)
			if err == nil {
				_, err = parsed.Render(conversation())
			}
			if !errors.Is(err, ErrNotSupported) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func FuzzTemplate(f *testing.F) {
	f.Add(`{% for m in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ 'a' }}{% endif %}{{ m.role }}{% endfor %}`)
	f.Add(`{% set ns = namespace(a=1) %}{%- for m in messages[::-1] %}{% set ns.a = 2 %}{% endfor -%}{{ ns.a ~ 'x'|trim }}`)
	f.Add(`{{ 'a'.split('b')[-1] if not x is defined else messages[1:][0] }}{# c #}`)
	f.Fuzz(func(t *testing.T, text string) {
		template, err := Parse(text)
		if err == nil {
			_, err = template.Render(conversation())
		}
		if err != nil && !errors.Is(err, ErrNotSupported) {
			t.Fatalf("an error of another kind: %v", err)
		}
	})
}
