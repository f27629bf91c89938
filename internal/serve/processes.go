package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"time"

	"gatewright.dev/gatewright/api/v1alpha1"
)

// startingTimeout is how long a decider may take until it answers: a large model is read and hashed whole first.
const startingTimeout = 5 * time.Minute

// Processes are deciders of runtime LlamaCpp that run for as long as a command does, for all the gates that it starts.
// Nil are none.
type Processes struct {
	config LlamaConfig
	byName map[string]*process
}

// StartProcesses starts the deciders of runtime LlamaCpp among models, and waits until all of them answer. Without a folder
// of models and a library it starts none: a gate then says for each of them what is missing.
func StartProcesses(ctx context.Context, models []*v1alpha1.DeciderModel, c LlamaConfig, log *slog.Logger) (_ *Processes, err error) {
	if c == (LlamaConfig{}) {
		return nil, nil //nolint:nilnil // none were wanted
	}
	p := &Processes{config: c, byName: map[string]*process{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	for _, m := range models {
		if m.Spec.Runtime != v1alpha1.RuntimeLlamaCpp {
			continue
		}
		if p.byName[m.Name], err = startShared(m, &c, log); err != nil {
			delete(p.byName, m.Name)
			return nil, fmt.Errorf("DeciderModel %s: %w", m.Name, err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, startingTimeout)
	defer cancel()
	for name, one := range p.byName {
		if err := one.awaitReady(ctx); err != nil {
			return nil, fmt.Errorf("DeciderModel %s: %w", name, err)
		}
	}
	return p, nil
}

func startShared(m *v1alpha1.DeciderModel, c *LlamaConfig, log *slog.Logger) (*process, error) {
	if err := errors.Join(checkServed(&m.Spec), checkLlama(&m.Spec, c)); err != nil {
		return nil, err
	}
	program, err := c.program()
	if err != nil {
		return nil, err
	}
	if _, err := exec.LookPath(program); err != nil {
		return nil, fmt.Errorf("the decider program cannot be run: %w: name it, or put decider beside this program", err)
	}
	p, err := startProcess(m, c, log)
	if err != nil {
		return nil, err
	}
	p.isShared = true
	return p, nil
}

// awaitReady waits until a process answers, or has ended once: it would end again.
func (p *process) awaitReady(ctx context.Context) error {
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		ready, why := p.child.Ready()
		switch {
		case ready:
			return nil
		case p.child.Starts() > 1:
			return fmt.Errorf("its process does not start: %s", why)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("its process is not ready: %s: %w", why, ctx.Err())
		case <-look.C:
		}
	}
}

// find gives the process that was started with what a manifest says, nil if there is none.
func (p *Processes) find(m *v1alpha1.DeciderModel) *process {
	if p == nil || p.byName[m.Name] == nil {
		return nil
	}
	if start, err := startOf(m, &p.config); err != nil || start != p.byName[m.Name].start {
		return nil
	}
	return p.byName[m.Name]
}

// Close ends them. No gate may ask them any more.
func (p *Processes) Close() error {
	if p == nil {
		return nil
	}
	for _, one := range p.byName {
		one.child.Close()
	}
	return nil
}
