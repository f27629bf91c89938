package controllers

import (
	"errors"
	"flag"
	"regexp"

	"gatewright.dev/gatewright/internal/inference/workload"
)

// DeciderOptions say what the pods of deciders and evaluations are made of.
type DeciderOptions struct {
	// Image of the decider server. Required for runtime LlamaCpp.
	Image string
	// ToolImage has the program gatewright, which downloads models, ends TLS in front of foreign images, and runs
	// evaluations. It should be the manager's own image.
	ToolImage string
	// PullSecret in Gatewright's namespace, for both images and foreign ones. Empty: none.
	PullSecret string
}

// BindFlags declares the flags.
func (o *DeciderOptions) BindFlags(f *flag.FlagSet) {
	f.StringVar(&o.Image, "decider-image", "", "image of the decider server, for DeciderModels of runtime LlamaCpp")
	f.StringVar(&o.ToolImage, "tool-image", "", "image of this manager, in which deciders and evaluations find the program gatewright")
	f.StringVar(&o.PullSecret, "decider-pull-secret", "", "Secret in Gatewright's namespace with which the images of deciders are pulled")
}

var imageName = regexp.MustCompile(`^[^\s]{1,512}$`)

// Validate says what is wrong with the flags.
func (o *DeciderOptions) Validate() error {
	switch {
	case o.Image != "" && !imageName.MatchString(o.Image):
		return errors.New("-decider-image is no name of an image")
	case o.ToolImage != "" && !imageName.MatchString(o.ToolImage):
		return errors.New("-tool-image is no name of an image")
	}
	return nil
}

// install is what the builders of children are given.
func (p *parts) install() workload.Install {
	return workload.Install{
		Namespace: p.Namespace, DeciderImage: p.Deciders.Image, ToolImage: p.Deciders.ToolImage, PullSecret: p.Deciders.PullSecret,
	}
}
