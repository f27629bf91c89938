package doctor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/config/crd"
	"gatewright.dev/gatewright/internal/names"
)

const reinstall = "install the manifests or the chart of the version that runs"

// definitions compares the kinds of the API server with those in this binary. A field that the API server does not know
// is cut out of every object, and what is missing in a policy may be what made it safe.
func (d *diagnosis) definitions() {
	if d.blind(seesDefinitions) {
		return
	}
	for i := range d.Wanted.Definitions {
		want := &d.Wanted.Definitions[i]
		object := "CustomResourceDefinition/" + want.Name
		at := slices.IndexFunc(d.Definitions, func(have apiextensionsv1.CustomResourceDefinition) bool { return have.Name == want.Name })
		if at < 0 {
			d.add(Error, CheckDefinitions, object, "is missing", "apply config/crd, or let the chart do it")
			continue
		}
		have := &d.Definitions[at]
		switch {
		case schemaOf(have) == nil:
			d.add(Error, CheckDefinitions, object, "does not serve "+v1alpha1.GroupVersion.Version, reinstall)
		case !sameSchema(schemaOf(have), schemaOf(want)):
			d.add(Error, CheckDefinitions, object, "has another schema than this version: fields that it does not know are cut out of every object, also those that made it safe",
				"apply config/crd of the version that runs, or use the doctor of that version")
		case !isEstablished(have):
			d.add(Error, CheckDefinitions, object, "is not established", "look at its conditions: kubectl describe crd "+want.Name)
		}
	}
}

// ownDefinitions are those in this binary.
func ownDefinitions() ([]apiextensionsv1.CustomResourceDefinition, error) {
	names, err := fs.Glob(crd.Bases, "bases/*.yaml")
	if err != nil {
		return nil, err
	}
	var out []apiextensionsv1.CustomResourceDefinition
	for _, name := range names {
		data, err := crd.Bases.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var c apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(data, &c); err != nil {
			return nil, fmt.Errorf("reading %s: %w", path.Base(name), err)
		}
		out = append(out, c)
	}
	return out, nil
}

func schemaOf(c *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.JSONSchemaProps {
	for i := range c.Spec.Versions {
		if v := &c.Spec.Versions[i]; v.Name == v1alpha1.GroupVersion.Version && v.Served && v.Schema != nil {
			return v.Schema.OpenAPIV3Schema
		}
	}
	return nil
}

// sameSchema compares schemas as they are written out.
func sameSchema(a, b *apiextensionsv1.JSONSchemaProps) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

func isEstablished(c *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(c.Status.Conditions, func(condition apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue
	})
}

// component lists the pods of one part of the installation.
func (d *diagnosis) component(name string) []*corev1.Pod {
	var out []*corev1.Pod
	for i := range d.Pods {
		p := &d.Pods[i]
		if p.Namespace == d.Namespace && p.Labels[names.ComponentLabel] == name && p.Labels[names.NameLabel] == names.Name && !isOver(p) {
			out = append(out, p)
		}
	}
	return out
}

// isOver says whether a pod has ended.
func isOver(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed || p.DeletionTimestamp != nil
}

// versions compares the images of managers and gates, which are one image. Deciders have one of their own, of which two
// versions at once are a roll-out that did not end.
func (d *diagnosis) versions() {
	if d.blind(seesPods) {
		return
	}
	images := d.images(names.ComponentManager, names.ComponentGate)
	if len(images) > 1 {
		d.add(Warning, CheckVersions, "Namespace/"+d.Namespace, "managers and gates are of several versions: "+strings.Join(images, ", "),
			"wait for the roll-out to end; if it does not, install one version")
	}
	for _, component := range []string{names.ComponentManager, names.ComponentGate, names.ComponentDecider} {
		for _, p := range d.component(component) {
			for _, c := range p.Spec.Containers {
				if tag := tagOf(c.Image); tag == "latest" || tag == "" {
					d.add(Warning, CheckVersions, "Pod/"+p.Namespace+"/"+p.Name, "runs image "+c.Image+", which is whatever was there when the pod was made",
						"name a version or a digest")
				}
			}
		}
	}
}

// images of the first container of components, sorted.
func (d *diagnosis) images(components ...string) []string {
	var out []string
	for _, component := range components {
		for _, p := range d.component(component) {
			if len(p.Spec.Containers) > 0 {
				out = append(out, p.Spec.Containers[0].Image)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// tagOf is the tag or digest of an image.
func tagOf(image string) string {
	if _, digest, ok := strings.Cut(image, "@"); ok {
		return digest
	}
	_, last, _ := strings.Cut("/"+image, "/")
	if i := strings.LastIndex(last, "/"); i >= 0 {
		last = last[i+1:]
	}
	_, tag, _ := strings.Cut(last, ":")
	return tag
}

func (d *diagnosis) managers() {
	if d.blind(seesPods) {
		return
	}
	ready, all := d.ready(names.ComponentManager)
	object := "Namespace/" + d.Namespace
	switch {
	case all == 0:
		d.add(Error, CheckManager, object, "has no manager: policies get no conditions, deciders no pods, certificates are not renewed", "install Gatewright, or name its namespace with --system-namespace")
	case ready == 0:
		d.add(Error, CheckManager, object, fmt.Sprintf("none of %d managers is ready: nobody can write a policy", all), "look at their logs: kubectl logs -n "+d.Namespace+" -l app.kubernetes.io/component=manager")
	}
}

// ready counts the pods of a component.
func (d *diagnosis) ready(component string) (ready, all int) {
	for _, p := range d.component(component) {
		all++
		if isReady(p) {
			ready++
		}
	}
	return ready, all
}

func isReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// gates counts the endpoints behind the Service that callers ask.
func (d *diagnosis) gates() {
	if d.blind(seesEndpointSlices) {
		return
	}
	ready, all := 0, 0
	for i := range d.EndpointSlices {
		for _, e := range d.EndpointSlices[i].Endpoints {
			all++
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				ready++
			}
		}
	}
	object := "Service/" + d.Namespace + "/" + names.GateService
	look := "look at their logs: kubectl logs -n " + d.Namespace + " -l app.kubernetes.io/component=gate"
	switch {
	case ready == 0:
		d.add(Error, CheckGates, object, fmt.Sprintf("no gate is ready, of %d: every call is refused by its caller", all), look)
	case ready < all:
		d.add(Warning, CheckGates, object, fmt.Sprintf("%d of %d gates are ready", ready, all), look)
	case ready == 1:
		d.add(Info, CheckGates, object, "one gate serves: while it is replaced every call is refused by its caller", "run two or more replicas, with an audit sink that allows it")
	}
}
