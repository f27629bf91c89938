package inference

import (
	"testing"

	"gatewright.dev/gatewright/internal/questions"
)

func TestCalibrationIsPartOfTheFingerprint(t *testing.T) {
	plain := ServerOptions{Model: "m"}
	warm, warmer := plain, plain
	warm.Calibration = Calibration{questions.YesNo: 1300}
	warmer.Calibration = Calibration{questions.YesNo: 1400}
	seen := map[string]bool{}
	for _, o := range []ServerOptions{plain, warm, warmer} {
		seen[o.fingerprint("kind")] = true
	}
	if len(seen) != 3 {
		t.Errorf("three calibrations have %d fingerprints", len(seen))
	}
}
