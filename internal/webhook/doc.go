// Package webhook is what the API server asks the manager at admission: whether a policy or decider can be loaded, what
// an update loosens, whether an agent writes what judges it, and what a pod of agents is given.
//
// Each answer is a pure function (the engine's own Compile, ValidateDeciderModel, Loosened, AgentBy, Inject) behind a thin
// handler. Nothing else may depend on these answers: reconcilers and the gate compile policies on their own, and stay
// right where the webhook is absent.
package webhook
