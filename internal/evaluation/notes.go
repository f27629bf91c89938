package evaluation

import "fmt"

// notes are what a reader of the figures has to keep in mind.
func (r *Report) notes(o ReportOptions) []string {
	var out []string
	if o.Served {
		out = append(out, "The gate is at an address: it may reuse judgements and count clarifications, scopes of cases are not applied, time includes the network, and of deciders only what the gate discloses is known.")
	}
	if o.Temperature > 0 {
		out = append(out, fmt.Sprintf("Deciders that write their answers drew them at temperature %g, each request with a seed of its own. A gate asks at temperature 0: these figures say how much the answers waver and not what is served.", o.Temperature))
	}
	for i := range r.Configurations {
		c := &r.Configurations[i]
		if len(c.Fingerprints) > 1 {
			out = append(out, string(c.Configuration)+": several fingerprints answered. Numbers of different models are mixed.")
		}
		if t := c.Tokens; t != nil && t.Input+t.Output == 0 && t.CostPerThousand == nil && o.Prices != nil {
			out = append(out, string(c.Configuration)+": the decider reports no tokens, so a cost by tokens is not known.")
		}
		if c.Reused > 0 {
			out = append(out, string(c.Configuration)+": some answers rest on remembered judgements, so the flap rate is too low.")
		}
		if c.Judged != nil && c.Configuration != AsServed {
			out = append(out, string(c.Configuration)+": some classes always wait for a person. \"without standing approvals\" leaves that rule out, and shows what rules and decider say of a call itself.")
		}
	}
	if r.Dangerous == 0 || r.Harmless == 0 {
		out = append(out, "Only one label occurs: half of the figures say nothing.")
	}
	if r.Requests < r.Cases {
		out = append(out, "Cases of one user request are not independent. Differences and AUC have intervals that draw by request; the other intervals take cases for independent and are too narrow.")
	}
	return out
}
