// Command monitoring evaluates every expression of the dashboard on a running Prometheus that scrapes a running gate, and
// draws the panels from the results. It exits with 1 when an expression is not valid, or has no data where the dashboard
// does not say that this may be so.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// config is what a person may choose.
type config struct {
	gate, dashboard, rules, picture, work string
	// duration of the load.
	duration time.Duration
	// rate is calls a second.
	rate float64
}

func main() {
	var c config
	flag.StringVar(&c.gate, "gate", "bin/gatewright", "gate that is started; make build makes it")
	flag.StringVar(&c.dashboard, "dashboard", "config/monitoring/dashboard.json", "dashboard whose expressions are evaluated")
	flag.StringVar(&c.rules, "rules", "config/monitoring/rules.yaml", "rules that Prometheus evaluates")
	flag.StringVar(&c.picture, "picture", "docs/images/dashboard.png", "where the panels are drawn; empty: nowhere")
	flag.StringVar(&c.work, "work", ".cache/monitoring", "folder for what is written on the way")
	flag.DurationVar(&c.duration, "duration", time.Minute, "how long calls are sent")
	flag.Float64Var(&c.rate, "rate", 20, "calls a second")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, &c)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "monitoring: "+err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context, c *config) (err error) {
	board, err := readDashboard(c.dashboard)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(c.work); err != nil {
		return err
	}
	if err := os.MkdirAll(c.work, 0o750); err != nil {
		return err
	}
	traffic, err := prepare(c.work)
	if err != nil {
		return err
	}
	g, err := startGate(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.stop()) }()
	p, err := startPrometheus(ctx, c.work, c.rules, g.url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()

	span, err := load(ctx, c, g, traffic)
	if err != nil {
		return err
	}
	if err := p.checkRules(ctx); err != nil {
		return err
	}
	results, failed := evaluate(ctx, p, board, span)
	if c.picture != "" {
		if err := draw(ctx, c, board, results, span); err != nil {
			return errors.Join(failed, err)
		}
	}
	return failed
}

// load sends calls once Prometheus has seen the gate without any, and waits until it has seen the last.
func load(ctx context.Context, c *config, g *gateProcess, t *traffic) (span, error) {
	settle := 3 * scrapeEvery
	if err := pause(ctx, settle); err != nil {
		return span{}, err
	}
	s := span{from: time.Now()}
	fmt.Printf("calls for %s, %g a second\n", c.duration, c.rate)
	done, err := t.send(ctx, g, c.duration, c.rate)
	if err != nil {
		return span{}, err
	}
	fmt.Println(done)
	if err := pause(ctx, settle); err != nil {
		return span{}, err
	}
	s.to = time.Now()
	return s, nil
}

// span is the time that is looked at.
type span struct{ from, to time.Time }

// pause waits, or ends with the context.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// evaluate asks Prometheus for every expression and prints what each panel shows.
func evaluate(ctx context.Context, p *prometheusServer, board *dashboard, s span) (map[int][]result, error) {
	results := map[int][]result{}
	var errs []error
	for i := range board.Panels {
		panel := &board.Panels[i]
		for _, t := range panel.Targets {
			r, err := p.query(ctx, &t, s)
			if err == nil && len(r.series) == 0 && panel.FieldConfig.Defaults.NoValue == "" {
				err = errors.New("has no data, and the panel does not say that this may be so")
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("panel %q, %s: %w", panel.Title, t.Expr, err))
				continue
			}
			results[panel.ID] = append(results[panel.ID], r)
			fmt.Printf("%-40s %2d series  %s\n", panel.Title, len(r.series), t.Expr)
		}
	}
	return results, errors.Join(errs...)
}

// page is where the panels are drawn before they are a picture.
func (c *config) page() string { return filepath.Join(c.work, "dashboard.html") }
