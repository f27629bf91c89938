package proxy

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"
)

// steering are headers by which some servers take another method or path than the request line says.
var steering = []string{
	"X-Http-Method", "X-Http-Method-Override", "X-Method-Override", "X-Original-Url", "X-Original-Uri", "X-Rewrite-Url",
	"X-Original-Method", "X-Forwarded-Method", "X-Forwarded-Uri", "X-Forwarded-Prefix", "X-Forwarded-Path",
}

// checkShape refuses requests that a server behind could read otherwise than the proxy does, whatever they are for.
func checkShape(r *http.Request, origins []string) *denial {
	if d := checkTarget(r); d != nil {
		return d
	}
	for name, values := range r.Header {
		if strings.Contains(name, "_") { // some servers take it for the header with a dash
			return bad(CodeBadHeader, "the name of a header holds an underscore")
		}
		if slices.Contains(steering, name) {
			return bad(CodeBadHeader, "a header asks for another method or path than the request line: "+name)
		}
		isSingle := name == "Content-Type" || name == "Content-Encoding" || name == "Content-Length" || name == "Host" || name == "Origin"
		if isSingle && len(values) > 1 {
			return bad(CodeBadHeader, "a header is there twice: "+name)
		}
	}
	if d := checkConnection(r); d != nil {
		return d
	}
	// No agent is a web page. A page that points a name of its own at this address would send one.
	if origin := r.Header.Get("Origin"); origin != "" && !slices.Contains(origins, origin) {
		return &denial{status: http.StatusForbidden, code: CodeOriginNotAllowed, message: "web pages of this origin may not call: see --allow-origin"}
	}
	return nil
}

// checkTarget takes a path only in its one spelling.
func checkTarget(r *http.Request) *denial {
	target, _, _ := strings.Cut(r.RequestURI, "?")
	clean := path.Clean(r.URL.Path)
	if strings.HasSuffix(r.URL.Path, "/") && clean != "/" {
		clean += "/"
	}
	if target == "" || target[0] != '/' || target != r.URL.Path || clean != r.URL.Path || !isPlainPath(target) {
		return bad(CodeBadPath, "the path is not in its plain form: no escapes, dots, double slashes or semicolons")
	}
	return nil
}

// isPlainPath takes the letters that every server reads alike.
func isPlainPath(s string) bool {
	for _, c := range []byte(s) {
		isWord := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !isWord && !strings.ContainsRune("/-._~:@!$'()*+,=", rune(c)) {
			return false
		}
	}
	return true
}

// checkConnection refuses headers by which a request could lose others on its way, or become another protocol.
func checkConnection(r *http.Request) *denial {
	if r.Header.Get("Upgrade") != "" || r.Method == http.MethodConnect {
		return bad(CodeBadHeader, "no other protocol is spoken here")
	}
	for _, value := range r.Header.Values("Connection") {
		for token := range strings.SplitSeq(value, ",") {
			if t := strings.ToLower(strings.TrimSpace(token)); t != "" && t != "close" && t != "keep-alive" {
				return bad(CodeBadHeader, "Connection names another header, which would not arrive")
			}
		}
	}
	return nil
}

// checkJSON says whether the body of a call is declared as what it is read as, and as long as it says.
func checkJSON(r *http.Request) *denial {
	if len(r.TransferEncoding) > 0 || r.ContentLength < 0 || len(r.Trailer) > 0 {
		return &denial{status: http.StatusLengthRequired, code: CodeLengthRequired, message: "send the body whole, with Content-Length and without trailers"}
	}
	if e := r.Header.Get("Content-Encoding"); e != "" {
		return &denial{status: http.StatusUnsupportedMediaType, code: CodeEncodedBody, message: "send the body without Content-Encoding"}
	}
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset, hasCharset := params["charset"]
	if hasCharset {
		delete(params, "charset")
	}
	if err != nil || media != "application/json" || len(params) > 0 || hasCharset && !strings.EqualFold(charset, "utf-8") {
		return &denial{status: http.StatusUnsupportedMediaType, code: CodeUnsupportedMediaType, message: "send the body as Content-Type: application/json, in UTF-8"}
	}
	return nil
}

// readBody reads the whole body within its bounds.
func (p *Proxy) readBody(w http.ResponseWriter, r *http.Request) ([]byte, *denial) {
	if r.ContentLength > p.limits.body {
		return nil, p.tooLarge()
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, p.limits.body))
	if err == nil {
		return body, nil
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, p.tooLarge()
	}
	return nil, &denial{status: http.StatusBadRequest, code: CodeBadCall, message: "the body broke off or took too long", cause: err}
}

// readWithin gives what is still to be read of a request its time; zero is any.
func (p *Proxy) readWithin(w http.ResponseWriter, d time.Duration) *denial {
	var until time.Time
	if d > 0 {
		until = p.clock.Now().Add(d)
	}
	if err := http.NewResponseController(w).SetReadDeadline(until); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return &denial{status: http.StatusInternalServerError, code: CodeInternal, message: "internal error: nothing was run", cause: err}
	}
	return nil
}

func (p *Proxy) tooLarge() *denial {
	return &denial{status: http.StatusRequestEntityTooLarge, code: CodeTooLarge, message: fmt.Sprintf("the body is longer than %d bytes", p.limits.body)}
}

func bad(code Code, message string) *denial {
	return &denial{status: http.StatusBadRequest, code: code, message: message}
}
