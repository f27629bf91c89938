package policy

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"gatewright.dev/gatewright/api/v1alpha1"
)

// oneOf refuses a value that the API does not know. Read as the default it could be weaker than what was meant. Empty is
// the default.
func oneOf[T ~string](c *compiler, path *field.Path, v T, known ...T) {
	if v != "" && !slices.Contains(known, v) {
		c.errs = append(c.errs, field.NotSupported(path, v, known))
	}
}

func (c *compiler) outcome(path *field.Path, o v1alpha1.Outcome) {
	oneOf(c, path, o, v1alpha1.OutcomeAllow, v1alpha1.OutcomeClarify, v1alpha1.OutcomeConfirm, v1alpha1.OutcomeBlock)
}

// stricter refuses a rule that would allow: it would keep the rules behind it from being looked at.
func (c *compiler) stricter(path *field.Path, o v1alpha1.StricterOutcome) {
	oneOf(c, path, o, v1alpha1.StricterOutcome(v1alpha1.OutcomeClarify), v1alpha1.StricterOutcome(v1alpha1.OutcomeConfirm),
		v1alpha1.StricterOutcome(v1alpha1.OutcomeBlock))
}

// pointer refuses what names no argument, and so would protect none.
func (c *compiler) pointer(path *field.Path, p v1alpha1.Pointer) {
	parts := strings.Split(string(p), "/")
	escapes := strings.NewReplacer("~0", "", "~1", "")
	switch {
	case len(parts) < 2 || parts[0] != "" || strings.Contains(escapes.Replace(string(p)), "~"):
		c.fail(path, p, "is no JSON Pointer: begin with / and write ~ in a name as ~0 and / as ~1")
	case slices.Contains(parts, "*"):
		c.fail(path, p, "has no wildcards here: name the argument, and a list in it is checked item by item")
	}
}

// toolTerms checks the settings of a tool that are used as they stand.
func (c *compiler) toolTerms(r *v1alpha1.ToolRule, path *field.Path) {
	oneOf(c, path.Child("decider"), r.Decider, v1alpha1.DeciderSkip, v1alpha1.DeciderAsk)
	oneOf(c, path.Child("onSchemaViolation"), r.OnSchemaViolation, v1alpha1.SchemaViolationClarify, v1alpha1.SchemaViolationBlock)
	oneOf(c, path.Child("permit"), r.Permit, v1alpha1.PermitNone, v1alpha1.PermitRequired)
	for i, e := range r.Effects {
		oneOf(c, path.Child("effects").Index(i), e, v1alpha1.EffectDeletesData, v1alpha1.EffectMovesMoney, v1alpha1.EffectLeavesTheSystem)
	}
	if r.Permit == v1alpha1.PermitRequired && r.PermitAudience == "" {
		c.errs = append(c.errs, field.Required(path.Child("permitAudience"), "permit: Required needs the tool server that checks it"))
	}
	for i, s := range r.Sensitive {
		c.pointer(path.Child("sensitive").Index(i), s)
	}
}
