package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// scrapeEvery is short, so that a run of a minute has as many samples as half an hour has in real use.
const scrapeEvery = time.Second

// rateInterval stands for $__rate_interval: enough scrapes that a slow one leaves no gap.
const rateInterval = 10 * scrapeEvery

// prometheusServer is a running server.
type prometheusServer struct {
	*program
	url string
}

func startPrometheus(ctx context.Context, work, rules, gate string) (*prometheusServer, error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	rules, err = filepath.Abs(rules)
	if err != nil {
		return nil, err
	}
	configuration, err := json.Marshal(map[string]any{ // which is YAML too
		"global":     map[string]any{"scrape_interval": scrapeEvery.String(), "evaluation_interval": scrapeEvery.String()},
		"rule_files": []string{rules},
		"scrape_configs": []any{map[string]any{
			"job_name": "gatewright", "static_configs": []any{map[string]any{"targets": []string{strings.TrimPrefix(gate, "http://")}}},
		}},
	})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(work, "prometheus.yaml")
	if err := os.WriteFile(file, configuration, 0o600); err != nil {
		return nil, err
	}
	p, err := launch(ctx, filepath.Join(work, "prometheus.log"), "prometheus", "--config.file="+file,
		"--storage.tsdb.path="+filepath.Join(work, "tsdb"), "--web.listen-address="+address, "--log.level=warn")
	if err != nil {
		return nil, err
	}
	server := &prometheusServer{program: p, url: "http://" + address}
	if err := waitFor(ctx, server.url+"/-/ready"); err != nil {
		return nil, errors.Join(fmt.Errorf("prometheus: %w; %s says why", err, p.log.Name()), server.stop())
	}
	return server, nil
}

// get asks the HTTP API and returns what it says under data.
func (p *prometheusServer) get(ctx context.Context, path string, query url.Values, data any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/api/v1/"+path+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	out := struct {
		Status string `json:"status"`
		Error  string `json:"error"`
		Data   any    `json:"data"`
	}{Data: data}
	if err := json.Unmarshal(text, &out); err != nil {
		return fmt.Errorf("HTTP %d: %w", answer.StatusCode, err)
	}
	if out.Status != "success" {
		return fmt.Errorf("HTTP %d: %s", answer.StatusCode, out.Error)
	}
	return nil
}

// checkRules fails if a rule could not be evaluated on real series.
func (p *prometheusServer) checkRules(ctx context.Context) error {
	var all struct {
		Groups []struct {
			Rules []struct {
				Name      string `json:"name"`
				Health    string `json:"health"`
				LastError string `json:"lastError"`
			} `json:"rules"`
		} `json:"groups"`
	}
	if err := p.get(ctx, "rules", nil, &all); err != nil {
		return err
	}
	var errs []error
	count := 0
	for _, g := range all.Groups {
		for _, r := range g.Rules {
			count++
			if r.Health != "ok" {
				errs = append(errs, fmt.Errorf("rule %s is %s: %s", r.Name, r.Health, r.LastError))
			}
		}
	}
	if count == 0 {
		errs = append(errs, errors.New("prometheus has no rules"))
	}
	fmt.Printf("%d rules evaluated\n", count)
	return errors.Join(errs...)
}

// result is what Prometheus says to a target: its series with the points that are numbers.
type result struct{ series []series }

type series struct {
	name   string
	points []point
}

// point is a value some seconds after the beginning of the span.
type point struct{ at, value float64 }

func (s *series) last() float64 { return s.points[len(s.points)-1].value }

// query evaluates a target as Grafana would: over the span, or at its end.
func (p *prometheusServer) query(ctx context.Context, t *target, s span) (result, error) {
	expr := strings.NewReplacer("$__rate_interval", rateInterval.String(), "$__range", s.to.Sub(s.from).Round(time.Second).String()).Replace(t.Expr)
	if strings.Contains(expr, "$") {
		return result{}, errors.New("holds a variable that is not known here")
	}
	query, path := url.Values{"query": {expr}}, "query_range"
	if t.Instant {
		path = "query"
		query.Set("time", unix(s.to))
	} else {
		query.Set("start", unix(s.from))
		query.Set("end", unix(s.to))
		query.Set("step", "1")
	}
	var data struct {
		Result []struct {
			Metric map[string]string `json:"metric"`
			Values []sample          `json:"values"`
			Value  *sample           `json:"value"`
		} `json:"result"`
	}
	if err := p.get(ctx, path, query, &data); err != nil {
		return result{}, err
	}
	var out result
	for _, r := range data.Result {
		if r.Value != nil {
			r.Values = append(r.Values, *r.Value)
		}
		one := series{name: t.legend(r.Metric)}
		for _, v := range r.Values {
			if !math.IsNaN(v.value) && !math.IsInf(v.value, 0) {
				one.points = append(one.points, point{v.at - float64(s.from.UnixMilli())/1000, v.value})
			}
		}
		if len(one.points) > 0 {
			out.series = append(out.series, one)
		}
	}
	return out, nil
}

func unix(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }

// sample is [seconds, "value"].
type sample point

// UnmarshalJSON reads a sample as the API writes it.
func (s *sample) UnmarshalJSON(data []byte) error {
	var value string
	if err := json.Unmarshal(data, &[]any{&s.at, &value}); err != nil {
		return err
	}
	v, err := strconv.ParseFloat(value, 64)
	s.value = v
	return err
}
