package hosts

import (
	"strings"

	"gatewright.dev/gatewright/internal/policy/paths/plain"
)

// checkMailto judges the addresses of a mailto URL and of its header fields that add recipients.
func (h *Hosts) checkMailto(rest string) *Violation {
	rest, _, _ = strings.Cut(rest, "#")
	list, fields, _ := strings.Cut(rest, "?")
	// Decoding comes before splitting: "%2c" separates recipients for lenient mail programs.
	lists := make([]string, 0, 4)
	if list != "" {
		lists = append(lists, list)
	}
	for field := range strings.SplitSeq(fields, "&") {
		name, value, _ := strings.Cut(field, "=")
		name, _ = plain.Unescape(name)
		switch strings.ToLower(name) {
		case "to", "cc", "bcc", "reply-to", "resent-to", "resent-cc", "resent-bcc":
			lists = append(lists, value)
		case "subject", "in-reply-to":
			if !isHeader(value) {
				return &Violation{NotText, "a header field of the mailto URL holds control characters"}
			}
		case "", "body":
		default:
			// "attach" sends a file of the caller's machine, and other fields may route the message.
			return &Violation{Malformed, "the mailto URL has a field that is not known to be harmless"}
		}
	}
	decoded, _ := plain.Unescape(strings.Join(lists, ","))
	return h.checkRecipients(decoded)
}

// isHeader reports whether no decoding of value holds a line break, after which "Bcc: eve@evil.com" would be a field.
func isHeader(value string) bool {
	for range plain.MaxLayers + 1 {
		if !plain.Text(value) {
			return false
		}
		decoded, changed := plain.Unescape(value)
		if !changed {
			return true
		}
		value = decoded
	}
	return false
}

// checkRecipients judges bare addresses, separated by commas or semicolons. Every one has to be allowed.
func (h *Hosts) checkRecipients(list string) *Violation {
	several := strings.ContainsAny(list, ",;")
	found := false
	for list != "" {
		address := list
		if end := strings.IndexAny(list, ",;"); end >= 0 {
			address, list = list[:end], list[end+1:]
		} else {
			list = ""
		}
		address = strings.Trim(address, " ")
		if address == "" {
			continue
		}
		found = true
		if v := h.checkRecipient(address); v != nil {
			if several {
				return &Violation{Recipient, "a recipient: " + v.Detail}
			}
			return v
		}
	}
	if !found {
		return &Violation{Malformed, "there is no recipient"}
	}
	return nil
}

func (h *Hosts) checkRecipient(address string) *Violation {
	local, domain, found := strings.Cut(address, "@")
	if !found || !isLocalPart(local) {
		// Display names and comments are where mail programs disagree: "good@good.com <eve@evil.com>".
		return &Violation{Malformed, "not a bare address such as user@example.com"}
	}
	if strings.HasPrefix(domain, "[") {
		return &Violation{IPLiteral, "the mail domain is an address"}
	}
	name, addr, v := canonical(domain)
	if v != nil {
		return v
	}
	return h.match(target{scheme: "mailto", host: name, addr: addr})
}

// isLocalPart accepts the usual characters. Missing on purpose: "%" and "!", which relays read as a further hop, quotes,
// and a leading dash, which mail programs have read as an option.
func isLocalPart(s string) bool {
	if s == "" || len(s) > 64 || s[0] == '-' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !isLetter(c) && !isDigit(c) && strings.IndexByte("._+-=~'&", c) < 0 {
			return false
		}
	}
	return true
}
