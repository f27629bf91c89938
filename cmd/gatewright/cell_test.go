package main

import "testing"

func TestCellKeepsATerminalSafe(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"plain text":               {"shell: ls -la", "shell: ls -la"},
		"letters of any script":    {"запрос 请", "запрос 请"},
		"nothing":                  {"", "-"},
		"an escape":                {"a\x1b[31mb", "a\ufffd[31mb"},
		"a line and a carriage":    {"a\n\rb", "a\ufffd\ufffdb"},
		"an eight-bit escape":      {"a\u009b31m", "a\ufffd31m"},
		"a change of direction":    {"a\u202eb\u2066c", "a\ufffdb\ufffdc"},
		"what nobody sees":         {"a\u200bb\u00adc", "a\ufffdb\ufffdc"},
		"another end of a line":    {"a\u2028b", "a\ufffdb"},
		"a space of another width": {"a\u00a0b", "a\ufffdb"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := cell(test.text); got != test.want {
				t.Errorf("cell(%q) = %q, want %q", test.text, got, test.want)
			}
		})
	}
}
