package hosts

import (
	"strings"
	"unicode"

	"gatewright.dev/gatewright/internal/policy/paths/plain"
)

// maxSteps bounds the readings of parameters that one Check looks at: eight layers for each of thirty parameters.
const maxSteps = 256

// redirectNames are parameters by which services send a visitor on or fetch for a caller, in lower case without
// punctuation. Names that end in "url" or "uri" count as well.
var redirectNames = map[string]bool{
	"back": true, "callback": true, "continue": true, "dest": true, "destination": true, "domain": true, "endpoint": true,
	"feed": true, "fetch": true, "forward": true, "forwardto": true, "go": true, "goto": true, "host": true, "href": true,
	"image": true, "jump": true, "link": true, "load": true, "location": true, "next": true, "nextpage": true, "open": true,
	"origin": true, "out": true, "proxy": true, "r": true, "redir": true, "redirect": true, "redirectto": true,
	"relaystate": true, "remote": true, "ret": true, "return": true, "returnpath": true, "returnto": true,
	"service": true, "site": true, "src": true, "target": true, "u": true, "view": true, "webhook": true,
}

// checkParameters looks at the query and at the fragment, whose parameters scripts follow as well. A parameter begins
// wherever any server begins one, and its value ends where the first or where the last server ends it: of
// "next=https://good.com;@evil.com" some read good.com and some evil.com.
func (w *walk) checkParameters(scheme, tail string) *Violation {
	for {
		start := strings.IndexAny(tail, "?#&;")
		if start < 0 {
			return nil
		}
		tail = tail[start+1:]
		pair, _, _ := strings.Cut(tail, "&")
		name, value, found := strings.Cut(pair, "=")
		if !found || strings.ContainsAny(name, "?#;") || !isRedirectName(name) {
			continue
		}
		if v := w.checkRedirect(scheme, value); v != nil {
			return v
		}
		if end := strings.IndexAny(value, "?#;"); end >= 0 {
			if v := w.checkRedirect(scheme, value[:end]); v != nil {
				return v
			}
		}
	}
}

// isRedirectName compares letters and digits only, so that redirect_uri, redirectURI and redirect-uri[] are one name.
func isRedirectName(name string) bool {
	for layer := 0; ; layer++ {
		decoded, changed := plain.Unescape(name)
		if !changed {
			break
		}
		if layer == plain.MaxLayers {
			return true // nobody hides a harmless name so well
		}
		name = decoded
	}
	name, _, _ = strings.Cut(name, "[")
	var buffer [32]byte // longer than every name in the table; of longer names the end decides
	kept := buffer[:0]
	for i := range len(name) {
		c := name[i]
		if !isLetter(c) && !isDigit(c) {
			continue
		}
		if len(kept) == len(buffer) {
			kept = buffer[:copy(buffer[:], buffer[1:])]
		}
		if isLetter(c) {
			c |= 0x20
		}
		kept = append(kept, c)
	}
	if n := len(kept); n >= 3 && (string(kept[n-3:]) == "url" || string(kept[n-3:]) == "uri") {
		return true
	}
	return redirectNames[string(kept)]
}

// checkRedirect judges every reading of a parameter's value, since nobody knows how often the receiver decodes it.
func (w *walk) checkRedirect(scheme, value string) *Violation {
	for range plain.MaxLayers + 1 {
		if w.steps--; w.steps < 0 {
			return &Violation{RedirectParameter, "there are too many parameters that may redirect"}
		}
		if v := w.checkDestination(scheme, value); v != nil {
			if v.Code == RedirectParameter || v.Code == Recipient {
				return &Violation{RedirectParameter, v.Detail}
			}
			return &Violation{RedirectParameter, "in a parameter: " + v.Detail}
		}
		decoded, changed := plain.Unescape(value)
		if !changed {
			return nil
		}
		value = decoded
	}
	return &Violation{RedirectParameter, "a parameter is percent-encoded too many times"}
}

// checkDestination reads a value as leniently as a browser reads the Location of a redirect.
func (w *walk) checkDestination(scheme, value string) *Violation {
	value = lenient(value)
	before, after, hasColon := strings.Cut(value, ":")
	switch {
	case strings.HasPrefix(value, "//"):
		return w.checkLocation(scheme, strings.TrimLeft(value, "/"))
	case strings.HasPrefix(value, "/"):
		return w.checkParameters(scheme, value)
	case hasColon && isScheme(before) && !isPortStart(after):
		return w.checkAbsolute(strings.ToLower(before), after)
	}
	authority, tail := cutAuthority(value)
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		return w.checkLocation("", authority[at+1:]+tail)
	}
	if looksLikeHost(authority) {
		return w.checkLocation("", value)
	}
	return w.checkParameters(scheme, value)
}

func (w *walk) checkAbsolute(scheme, after string) *Violation {
	if scheme == "mailto" {
		return w.hosts.checkMailto(after)
	}
	if hostless[scheme] || !browsed[scheme] && !strings.HasPrefix(after, "/") {
		return &Violation{RedirectParameter, "a parameter holds a scheme that names no host"}
	}
	return w.checkLocation(scheme, strings.TrimLeft(after, "/"))
}

// lenient does what browsers do first: drop control characters, trim white space (a plus is a space in a query), and read
// backslashes as slashes.
func lenient(value string) string {
	if strings.IndexFunc(value, unicode.IsControl) >= 0 {
		value = strings.Map(func(r rune) rune {
			if unicode.IsControl(r) {
				return -1
			}
			return r
		}, value)
	}
	value = strings.TrimFunc(value, func(r rune) bool { return r == '+' || unicode.IsSpace(r) })
	return strings.ReplaceAll(value, `\`, "/")
}

// fileEndings are what the last label of a relative file name may be; none of them is a top-level domain.
var fileEndings = map[string]bool{
	"asp": true, "aspx": true, "css": true, "csv": true, "gif": true, "htm": true, "html": true, "jpeg": true,
	"jpg": true, "js": true, "json": true, "jsp": true, "pdf": true, "php": true, "png": true, "svg": true, "txt": true,
	"xhtml": true, "xml": true,
}

// looksLikeHost tells "evil.com" and "2130706433" from relative references such as "home", "2" and "index.html". A single
// word is taken for a relative reference, except localhost. What holds an escape is judged once that is decoded.
func looksLikeHost(authority string) bool {
	if _, escaped := plain.Unescape(authority); escaped {
		return false
	}
	if strings.HasPrefix(authority, "[") {
		return true
	}
	host, _, hasPort := strings.Cut(strings.ToLower(authority), ":")
	if hasPort || host == "localhost" || hasALabel(host) {
		return true
	}
	if strings.Trim(host, ".") == "" {
		return false // "." and ".." begin a relative reference
	}
	if dot := strings.LastIndexAny(host, ".。．｡"); dot >= 0 {
		return !fileEndings[host[dot+1:]]
	}
	// 2^24 is the first number that is an address outside 0.0.0.0/8; smaller ones are page numbers.
	return endsInNumber(host) && (len(host) >= 8 || strings.HasPrefix(host, "0x"))
}
