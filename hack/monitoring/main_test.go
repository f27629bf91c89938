package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// answering is a Prometheus that says the same to every query, and keeps what it was asked.
func answering(t *testing.T, status int, body string) (p *prometheusServer, asked *[]url.URL) {
	t.Helper()
	asked = &[]url.URL{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, *r.URL)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	return &prometheusServer{url: server.URL}, asked
}

var tenSeconds = span{time.UnixMilli(1_000_000), time.UnixMilli(1_010_000)}

func TestNumbersOfASeries(t *testing.T) {
	p, asked := answering(t, http.StatusOK, `{"status":"success","data":{"result":[
		{"metric":{"class":"Write"},"values":[[1000,"NaN"],[1001.5,"2"],[1002,"+Inf"],[1003,"0"]]},
		{"metric":{"class":"Read"},"values":[[1000,"NaN"]]}]}}`)
	got, err := p.query(t.Context(), &target{Expr: "f(x[$__rate_interval]) + g(x[$__range])", LegendFormat: "{{class}} of {{ none }}"}, tenSeconds)
	if err != nil {
		t.Fatal(err)
	}
	want := []series{{"Write of ", []point{{1.5, 2}, {3, 0}}}}
	if diff := cmp.Diff(want, got.series, cmp.AllowUnexported(series{}, point{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if q := (*asked)[0].Query(); q.Get("query") != "f(x[10s]) + g(x[10s])" || q.Get("start") != "1000.000" || q.Get("end") != "1010.000" {
		t.Errorf("asked %v", q)
	}
}

func TestADashboardFailsWhereItShowsNothing(t *testing.T) {
	const some = `{"status":"success","data":{"result":[{"metric":{},"value":[1010,"1"]}]}}`
	for name, test := range map[string]struct {
		status        int
		body          string
		expr, noValue string
		want          string // empty: all is well
	}{
		"data":                                 {http.StatusOK, some, "x", "", ""},
		"no data":                              {http.StatusOK, `{"status":"success","data":{"result":[]}}`, "x", "", "has no data"},
		"only what is no number":               {http.StatusOK, strings.Replace(some, `"1"`, `"NaN"`, 1), "x", "", "has no data"},
		"no data where the panel foresees it":  {http.StatusOK, `{"status":"success","data":{"result":[]}}`, "x", "none", ""},
		"an expression that is none":           {http.StatusBadRequest, `{"status":"error","error":"parse error"}`, "x", "none", "parse error"},
		"a variable that nobody knows":         {http.StatusOK, some, "x[$interval]", "none", "variable"},
		"something else than Prometheus":       {http.StatusOK, "<html>", "x", "none", "HTTP 200"},
		"a failure that does not say anything": {http.StatusInternalServerError, "{}", "x", "none", "HTTP 500"},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := answering(t, test.status, test.body)
			one := panel{ID: 1, Title: "one", Targets: []target{{Expr: test.expr, Instant: true}}}
			one.FieldConfig.Defaults.NoValue = test.noValue
			_, err := evaluate(t.Context(), p, &dashboard{Panels: []panel{one}}, tenSeconds)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestRulesThatFailAreFound(t *testing.T) {
	for name, test := range map[string]struct{ rules, want string }{
		"all are well":      {`{"name":"a","health":"ok"}`, ""},
		"one is not":        {`{"name":"a","health":"ok"},{"name":"b","health":"err","lastError":"many-to-many"}`, "rule b is err: many-to-many"},
		"one was not asked": {`{"name":"a","health":"unknown"}`, "rule a is unknown"},
		"there are none":    {``, "no rules"},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := answering(t, http.StatusOK, `{"status":"success","data":{"groups":[{"rules":[`+test.rules+`]}]}}`)
			err := p.checkRules(t.Context())
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestValuesAreWrittenInTheirUnit(t *testing.T) {
	for want, d := range map[string]struct {
		unit  string
		value float64
	}{
		"0 s": {"s", 0}, "35 µs": {"s", 35e-6}, "4.12 ms": {"s", 0.004123}, "3.7 s": {"s", 3.7}, "12.5 %": {"percentunit", 0.125},
		"2.5/s": {"reqps", 2.5}, "1234": {"short", 1234}, "0.25": {"short", 0.25},
	} {
		if got := (&defaults{Unit: d.unit}).format(d.value); got != want {
			t.Errorf("%v in %s is %q, want %q", d.value, d.unit, got, want)
		}
	}
}

func TestTheLegendSaysHowMuchItLeavesOut(t *testing.T) {
	names := strings.Fields(strings.Repeat("name ", 20))
	lines := layoutLegend(names, 2*entryWidth("name"))
	want := [][]int{{0, 1}, {2, 3}, {4, 5}, {6, -1}}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var c canvas
	c.legend(lines, names, make([]string, len(names)), 0, 0)
	if !strings.Contains(c.String(), "and 13 more") {
		t.Error(c.String())
	}
}
