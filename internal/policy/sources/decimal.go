package sources

import (
	"strconv"
	"strings"
)

// decimal is a number as written: digits before and behind the point. It stays text, so that a long account number
// is never rounded.
type decimal struct {
	whole, fraction string
	negative        bool
}

// canonical writes the number times ten to the power of shift, without needless zeros.
func (d decimal) canonical(shift int) string {
	digits, point := d.whole+d.fraction, len(d.whole)+shift
	if point < 0 {
		digits, point = strings.Repeat("0", -point)+digits, 0
	}
	if point > len(digits) {
		digits += strings.Repeat("0", point-len(digits))
	}
	head := strings.TrimLeft(digits[:point], "0")
	tail := strings.TrimRight(digits[point:], "0")
	if head == "" {
		head = "0"
	}
	if tail != "" {
		head += "." + tail
	}
	if d.negative && head != "0" {
		return "-" + head
	}
	return head
}

// literalAt reads the run of digits, points and commas at pos. A run that is no number, such as a version, yields
// none; a list without blanks (1,2,3) yields several.
func literalAt(text string, pos int) (numbers []decimal, end int) {
	end = pos
	for end < len(text) && (isDigit(text[end]) || (text[end] == '.' || text[end] == ',') && end+1 < len(text) && isDigit(text[end+1])) {
		end++
	}
	run := text[pos:end]
	points, commas := strings.Count(run, "."), strings.Count(run, ",")
	switch {
	case points == 0 && commas == 0:
		return []decimal{{whole: run}}, end
	case commas == 0 && points == 1:
		whole, fraction, _ := strings.Cut(run, ".")
		return []decimal{{whole: whole, fraction: fraction}}, end
	case commas > 0 && points <= 1 && strings.LastIndexByte(run, ',') < strings.IndexByte(run+".", '.') && isGrouped(before(run, '.'), ","):
		whole, fraction, _ := strings.Cut(strings.ReplaceAll(run, ",", ""), ".")
		return []decimal{{whole: whole, fraction: fraction}}, end
	case points > 0 && commas == 1 && isGrouped(before(run, ','), "."):
		whole, fraction, _ := strings.Cut(strings.ReplaceAll(run, ".", ""), ",")
		return []decimal{{whole: whole, fraction: fraction}}, end
	case points == 0 && commas == 1:
		if whole, fraction, _ := strings.Cut(run, ","); len(fraction) <= 2 { // 12,50 as much of Europe writes it
			return []decimal{{whole: whole, fraction: fraction}}, end
		}
	case points == 0:
		for part := range strings.SplitSeq(run, ",") {
			numbers = append(numbers, decimal{whole: part})
		}
		return numbers, end
	}
	return nil, end
}

func before(s string, sep byte) string {
	if before, _, ok := strings.Cut(s, string([]byte{sep})); ok {
		return before
	}
	return s
}

// isGrouped reports whether the separator cuts digits into thousands.
func isGrouped(s, sep string) bool {
	first := true
	for group := range strings.SplitSeq(s, sep) {
		if first && (len(group) < 1 || len(group) > 3) || !first && len(group) != 3 {
			return false
		}
		first = false
	}
	return true
}

func itoa(n int) string { return strconv.Itoa(n) }
