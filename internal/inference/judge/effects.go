package judge

import "slices"

// How sure words and classes make of an effect. These are a table and no measurement: a verb in the name of a tool says
// what its maker thought that it does. A policy that knows better says so in effects of the tool, which is not asked.
const (
	certain  = 1.0  // the policy says so
	likely   = 0.85 // a word of the tool's name says so
	possible = 0.35 // the class or the description allows it
	unlikely = 0.03 // a tool that reads
)

// effectOf rates an effect: by the policy's table, then by the verbs of the tool's name, then by its class.
func (e *evidence) effectOf(effect string, of acts, classes ...float64) float64 {
	v := e.view
	switch {
	case slices.Contains(e.state.Tool.Effects, effect):
		return certain
	case v.class == 0:
		return unlikely
	case v.acts&of != 0 && v.acts&actRead == 0:
		return likely
	case slices.Contains(classes, v.class):
		return 2 * possible
	case v.acts&of != 0:
		return possible
	case v.class < 0 && v.acts == actRead:
		return unlikely
	}
	return possible / 2
}

// deletes answers deletes_data. Overwriting counts, so an update may.
func (e *evidence) deletes() float64 {
	p := e.effectOf("DeletesData", actDelete, 3)
	if p < possible && e.view.acts&actUpdate != 0 && e.view.class != 0 {
		p = possible
	}
	return p
}

func (e *evidence) movesMoney() float64 { return e.effectOf("MovesMoney", actPay|actBuy) }

func (e *evidence) leaves() float64 { return e.effectOf("LeavesTheSystem", actSend, 2) }
