package workload

import (
	"strconv"

	"gatewright.dev/gatewright/api/v1alpha1"
)

// ReadoutFlags are the flags of the decider server that say how a model is read and calibrated, the same wherever it runs.
func ReadoutFlags(spec *v1alpha1.DeciderModelSpec) []string {
	var flags []string
	if spec.Readout != "" && spec.Readout != v1alpha1.ReadoutAuto {
		flags = append(flags, "-readout", string(spec.Readout))
	}
	cal := spec.Calibration
	if cal == nil {
		return flags
	}
	flags = append(flags, "-calibrated-for", string(cal.Fingerprint))
	for _, t := range []struct {
		name  string
		milli *int32
	}{{"noul", cal.YesNoMilli}, {"choice", cal.ChoiceMilli}, {"score", cal.ScoreMilli}} {
		if t.milli != nil {
			flags = append(flags, "-temperature", t.name+"="+strconv.Itoa(int(*t.milli)))
		}
	}
	return flags
}
