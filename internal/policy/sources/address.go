package sources

import (
	"strings"
	"unicode/utf8"
)

// looksLikeAddress reports whether a normalised value without blanks is an e-mail address, URL, host or path: its
// meaning hangs on every character.
func looksLikeAddress(v string) bool {
	if strings.ContainsAny(v, " ") {
		return false
	}
	if found := strings.Contains(v, "@"); found && hasWord(v) {
		return true
	}
	if strings.ContainsAny(v, `/\`) && hasWord(v) || strings.Contains(v, "://") {
		return true
	}
	for i := 1; i+1 < len(v); i++ {
		if v[i] == '.' && wordEnds(v, i) && wordStarts(v, i+1) {
			return true
		}
	}
	return false
}

// canonicalAddress drops what does not change where an address leads: mailto:, a web scheme, a slash at the end, and
// percent escapes of characters that need none.
func canonicalAddress(v string) string {
	v = decodePercent(v)
	for _, scheme := range [...]string{"mailto:", "https://", "http://"} {
		if rest, ok := strings.CutPrefix(v, scheme); ok {
			v = rest
			break
		}
	}
	if trimmed := strings.TrimRight(v, "/"); trimmed != "" {
		return trimmed
	}
	return v
}

// decodePercent decodes each escape once, and only where the result cannot part an address in another way.
func decodePercent(v string) string {
	if !strings.Contains(v, "%") {
		return v
	}
	out := make([]byte, 0, len(v))
	for i := 0; i < len(v); i++ {
		if v[i] == '%' && i+2 < len(v) {
			hi, lo := unhex(v[i+1]), unhex(v[i+2])
			if c := byte(hi<<4 | lo); hi >= 0 && lo >= 0 && needsNoEscape(c) {
				out = append(out, c)
				i += 2
				continue
			}
		}
		out = append(out, v[i])
	}
	if !utf8.Valid(out) {
		return v
	}
	return normalize(string(out))
}

// needsNoEscape holds for the unreserved characters of RFC 3986, the @ that mailto links often escape, blanks, and
// bytes of UTF-8 sequences.
func needsNoEscape(c byte) bool {
	return c >= utf8.RuneSelf || isWord(rune(c)) || strings.IndexByte("-._~@ ", c) >= 0
}

func unhex(c byte) int {
	switch {
	case isDigit(c):
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	}
	return -1
}

// decodedAddresses collects the chunks of a text that hold percent escapes, in canonical form.
func decodedAddresses(text string) map[string]struct{} {
	out := map[string]struct{}{}
	for from := 0; ; {
		i := strings.IndexByte(text[from:], '%')
		if i < 0 {
			return out
		}
		start, end := from+i, from+i
		for !isDelimiter(text, start-1) {
			start--
		}
		for !isDelimiter(text, end) {
			end++
		}
		chunk := strings.TrimRight(text[start:end], ".,!?:;*_~'")
		if addr := canonicalAddress(chunk); looksLikeAddress(chunk) && addr != chunk {
			out[addr] = struct{}{}
		}
		from = end
	}
}

// matchAddress finds an address in another spelling.
func (c *corpus) matchAddress(v string, b *budget) Match {
	canonical := canonicalAddress(v)
	if _, ok := c.decoded[canonical]; ok {
		return Rewritten
	}
	if canonical != v && hasWord(canonical) && c.find(canonical, true, b) != absent {
		return Rewritten
	}
	return None
}
