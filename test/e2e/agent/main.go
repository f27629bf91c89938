// Command agent is what the test's agent pods run. It knows the gate only by what was injected into its pod.
//
//	agent wait              does nothing until it is told to end
//	agent review            sends the request on standard input to the gate and prints the answer
//	agent load SECONDS CALLERS PAUSE [FILE]
//	                        sends the request on standard input, or in a file, again and again: so many callers, each with a
//	                        pause of so many milliseconds between calls, and each call with another value of the argument
//	                        "id". Prints a line for each answer.
//	agent reach HOST:PORT   says whether a TCP connection is made
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	gatewright "gatewright.dev/gatewright/clients/go"

	"gatewright.dev/gatewright/api/review/v1alpha1"
)

const reachTimeout = 3 * time.Second

// answer is one line of load.
type answer struct {
	Started  time.Time         `json:"started"`
	Ended    time.Time         `json:"ended"`
	Response v1alpha1.Response `json:"response"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	switch {
	case len(args) == 1 && args[0] == "wait":
		<-ctx.Done()
		return nil
	case len(args) == 1 && args[0] == "review":
		request, err := read(in)
		if err != nil {
			return err
		}
		return json.NewEncoder(out).Encode(gatewright.New(gatewright.Options{}).Review(ctx, request).Response)
	case len(args) > 0 && args[0] == "load":
		return load(ctx, args[1:], in, out)
	case len(args) == 2 && args[0] == "reach":
		return reach(ctx, args[1], out)
	default:
		return errors.New("usage: agent wait | review | load SECONDS CALLERS PAUSE [FILE] | reach HOST:PORT")
	}
}

func read(in io.Reader) (v1alpha1.Request, error) {
	var request v1alpha1.Request
	d := json.NewDecoder(in)
	d.DisallowUnknownFields()
	return request, d.Decode(&request)
}

func reach(ctx context.Context, address string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		_, err = fmt.Fprintln(out, "no connection:", err)
		return err
	}
	_, err = fmt.Fprintln(out, "connected")
	return errors.Join(err, connection.Close())
}

// plan is how load sends its request.
type plan struct {
	length, pause time.Duration
	callers       int
}

func planOf(args []string) (plan, error) {
	if len(args) < 3 {
		return plan{}, errors.New("load: want SECONDS CALLERS PAUSE [FILE]")
	}
	var numbers [3]int
	for i := range numbers {
		n, err := strconv.Atoi(args[i])
		if err != nil {
			return plan{}, fmt.Errorf("load: %w", err)
		}
		numbers[i] = n
	}
	return plan{time.Duration(numbers[0]) * time.Second, time.Duration(numbers[2]) * time.Millisecond, numbers[1]}, nil
}

func load(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	p, err := planOf(args)
	if err != nil {
		return err
	}
	if len(args) > 3 {
		f, err := os.Open(args[3])
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // it was only read
		in = f
	}
	request, err := read(in)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, p.length)
	defer cancel()
	var calls atomic.Int64
	var lines sync.Mutex
	client, encoder := gatewright.New(gatewright.Options{}), json.NewEncoder(out)
	var group sync.WaitGroup
	for range p.callers {
		group.Go(func() {
			for ctx.Err() == nil {
				a := once(client, request, calls.Add(1))
				lines.Lock()
				_ = encoder.Encode(a) // a reader that is gone ends the pod's command
				lines.Unlock()
				pause(ctx, p.pause)
			}
		})
	}
	group.Wait()
	return nil
}

func pause(ctx context.Context, length time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	<-ctx.Done()
}

// once does not hear of the end of the load: an answer that is under way counts too.
func once(client *gatewright.Client, request v1alpha1.Request, id int64) answer {
	arguments := maps.Clone(request.Arguments)
	if arguments == nil {
		arguments = map[string]any{}
	}
	arguments["id"] = id
	request.Arguments = arguments
	a := answer{Started: time.Now()}
	a.Response = client.Review(context.Background(), request).Response
	a.Ended = time.Now()
	return a
}
