package controllers

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// registered is a registry that keeps the names of what is registered.
type registered struct {
	prometheus.Registerer
	names []string
}

var descriptionName = regexp.MustCompile(`fqName: "([^"]+)"`)

func (r *registered) MustRegister(list ...prometheus.Collector) {
	for _, c := range list {
		descriptions := make(chan *prometheus.Desc, 8)
		c.Describe(descriptions)
		close(descriptions)
		for d := range descriptions {
			r.names = append(r.names, descriptionName.FindStringSubmatch(d.String())[1])
		}
	}
}

// TestMetricsAreInTheReference compares what is registered with the table of the reference, both ways.
func TestMetricsAreInTheReference(t *testing.T) {
	page, err := os.ReadFile("../docs/reference/manager.md")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, match := range regexp.MustCompile("(?m)^\\| `(gatewright_[a-z_]+)` \\|").FindAllStringSubmatch(string(page), -1) {
		want = append(want, match[1])
	}
	b, got := newBench(t), &registered{}
	b.Registry = got
	newGates(b.Client, b.Options)
	newCertificateReconciler(b.Client, b.parts)
	newKeyReconciler(b.Client, b.parts)
	newToolApprovalReconciler(b.Client, b.parts)
	slices.Sort(want)
	slices.Sort(got.names)
	if diff := cmp.Diff(want, got.names); diff != "" {
		t.Errorf("metrics (-reference +source):\n%s", diff)
	}
}
