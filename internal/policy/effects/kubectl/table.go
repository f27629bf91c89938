package kubectl

import (
	"strings"

	"gatewright.dev/gatewright/internal/policy/effects/effect"
)

// argKind says what the arguments of a command are.
type argKind int

const (
	noObjects argKind = iota
	objects
	keyed // objects, then pairs such as labels
	pods
	nodes
	requests // for certificates
	newObject
	freeWords // free words, such as the verb and the resource of auth can-i
)

// command is a row of the table of verbs.
type command struct {
	effects effect.Set
	args    argKind
	flags   flagSet
	// deleting are flags that make objects disappear.
	deleting []string
}

func (c command) why(verb string) string {
	if c.effects.IsRead() {
		return ""
	}
	return "the verb " + verb + " is more than a read"
}

// flags reads a list of names; a trailing = means that a value follows.
func flags(list string) flagSet {
	set := flagSet{}
	for name := range strings.FieldsSeq(list) {
		bare := strings.TrimSuffix(name, "=")
		set[bare] = bare != name
	}
	return set
}

const (
	writes  = effect.Reads | effect.Writes
	deletes = effect.Reads | effect.Writes | effect.Deletes

	getFlags = "all-namespaces no-headers show-labels show-kind watch watch-only ignore-not-found show-managed-fields " +
		"output-watch-events server-print output= selector= field-selector= sort-by= chunk-size= label-columns= "
	logFlags = "follow previous timestamps all-containers prefix ignore-errors all-pods container= tail= since= since-time= " +
		"limit-bytes= max-log-requests= selector= pod-running-timeout= "
	writeFlags = "output= dry-run= field-manager= validate= show-managed-fields save-config "
)

// commands is the table of verbs. What is missing (exec, cp, attach, port-forward, proxy, run, debug, edit, plugin and
// every unknown word) is the worst, and so is every flag that is missing: those that choose another cluster, server or
// identity, --raw, --kustomize, and templates in files.
var commands = map[string]command{
	"get":                    {effect.Reads, objects, flags(getFlags), nil},
	"describe":               {effect.Reads, objects, flags("all-namespaces selector= show-events chunk-size="), nil},
	"logs":                   {effect.Reads, pods, flags(logFlags), nil},
	"events":                 {effect.Reads, noObjects, flags("all-namespaces output= for= types= watch no-headers chunk-size="), nil},
	"top pods":               {effect.Reads, pods, flags("all-namespaces containers no-headers selector= sort-by= sum"), nil},
	"top pod":                {effect.Reads, pods, flags("all-namespaces containers no-headers selector= sort-by= sum"), nil},
	"top nodes":              {effect.Reads, nodes, flags("no-headers selector= sort-by= show-capacity"), nil},
	"top node":               {effect.Reads, nodes, flags("no-headers selector= sort-by= show-capacity"), nil},
	"explain":                {effect.Reads, freeWords, flags("api-version= recursive output="), nil},
	"api-resources":          {effect.Reads, noObjects, flags("api-group= namespaced no-headers output= sort-by= verbs= categories= cached"), nil},
	"api-versions":           {effect.Reads, noObjects, flags(""), nil},
	"version":                {effect.Reads, noObjects, flags("client output="), nil},
	"auth can-i":             {effect.Reads, freeWords, flags("all-namespaces list no-headers quiet subresource="), nil},
	"auth whoami":            {effect.Reads, noObjects, flags("output="), nil},
	"wait":                   {effect.Reads, objects, flags("all all-namespaces for= timeout= selector= field-selector= output= filename="), nil},
	"diff":                   {effect.Reads, noObjects, flags("filename= recursive server-side force-conflicts field-manager= selector= show-managed-fields"), nil},
	"rollout status":         {effect.Reads, objects, flags("watch revision= timeout= selector="), nil},
	"rollout history":        {effect.Reads, objects, flags("revision= output= selector="), nil},
	"config current-context": {effect.Reads, noObjects, flags(""), nil},
	"config get-contexts":    {effect.Reads, freeWords, flags("no-headers output="), nil},
	"config get-clusters":    {effect.Reads, noObjects, flags(""), nil},

	"apply":            {writes, noObjects, flags(writeFlags + "filename= recursive selector= all overwrite server-side force-conflicts prune force grace-period= wait timeout="), []string{"prune", "force", "grace-period"}},
	"create":           {writes, newObject, flags(writeFlags + "filename= recursive image= replicas= port= from-literal= from= schedule= verb= resource= resource-name= role= clusterrole= user= group= serviceaccount= hard= tcp= class= rule= value= description="), nil},
	"patch":            {writes, objects, flags(writeFlags + "filename= type= patch= subresource="), nil},
	"scale":            {writes, objects, flags(writeFlags + "filename= replicas= current-replicas= resource-version= timeout= selector= all"), nil},
	"autoscale":        {writes, objects, flags(writeFlags + "filename= min= max= cpu-percent= name="), nil},
	"label":            {writes, keyed, flags(writeFlags + "all all-namespaces filename= overwrite resource-version= selector= field-selector= list local"), nil},
	"annotate":         {writes, keyed, flags(writeFlags + "all all-namespaces filename= overwrite resource-version= selector= field-selector= list local"), nil},
	"expose":           {writes, objects, flags(writeFlags + "filename= port= target-port= name= type= protocol= selector= labels="), nil},
	"rollout restart":  {writes, objects, flags(writeFlags + "filename= selector="), nil},
	"rollout undo":     {writes, objects, flags(writeFlags + "filename= selector= to-revision="), nil},
	"rollout pause":    {writes, objects, flags(writeFlags + "filename= selector="), nil},
	"rollout resume":   {writes, objects, flags(writeFlags + "filename= selector="), nil},
	"set image":        {writes, keyed, flags(writeFlags + "filename= selector= all local"), nil},
	"set resources":    {writes, keyed, flags(writeFlags + "filename= selector= all local limits= requests= container="), nil},
	"cordon":           {writes, nodes, flags("dry-run= selector="), nil},
	"uncordon":         {writes, nodes, flags("dry-run= selector="), nil},
	"certificate deny": {writes, requests, flags("filename= force output="), nil},
	"replace":          {writes, noObjects, flags(writeFlags + "filename= recursive force grace-period= cascade= wait timeout= subresource="), []string{"force", "grace-period", "cascade"}},

	"taint":  {deletes, keyed, flags("all overwrite dry-run= selector= output="), nil},
	"delete": {deletes, objects, flags("all all-namespaces filename= recursive selector= field-selector= cascade= dry-run= force grace-period= ignore-not-found now output= timeout= wait"), nil},
	"drain":  {deletes, nodes, flags("force grace-period= ignore-daemonsets delete-emptydir-data disable-eviction dry-run= pod-selector= selector= timeout= skip-wait-for-delete-timeout= chunk-size="), nil},
}

// creatable are the kinds that kubectl creates without a manifest, with their aliases.
var creatable = set("clusterrole clusterrolebinding configmap cm cronjob cj deployment deploy ingress ing job namespace ns " +
	"poddisruptionbudget pdb priorityclass pc quota resourcequota role rolebinding secret service svc serviceaccount sa")

func set(list string) map[string]bool {
	names := map[string]bool{}
	for name := range strings.FieldsSeq(list) {
		names[name] = true
	}
	return names
}

// clusterScoped are the kinds that lie in no namespace, whatever -n says.
var clusterScoped = set("nodes namespaces persistentvolumes storageclasses customresourcedefinitions clusterroles " +
	"clusterrolebindings certificatesigningrequests priorityclasses apiservice apiservices ingressclass ingressclasses " +
	"runtimeclass runtimeclasses csidriver csidrivers csinode csinodes volumeattachment volumeattachments " +
	"clustertoolpolicy clustertoolpolicies ctp decidermodel decidermodels dm deciderevaluation deciderevaluations de " +
	"validatingwebhookconfiguration validatingwebhookconfigurations mutatingwebhookconfiguration " +
	"mutatingwebhookconfigurations validatingadmissionpolicy validatingadmissionpolicies " +
	"validatingadmissionpolicybinding validatingadmissionpolicybindings")

// shortNames gives the plural of kubectl's built-in short and singular names.
var shortNames = plurals("po pod pods", "svc service services", "secret secrets", "cm configmap configmaps",
	"deploy deployment deployments", "ds daemonset daemonsets", "sts statefulset statefulsets", "rs replicaset replicasets",
	"job jobs", "cj cronjob cronjobs", "ns namespace namespaces", "no node nodes", "ev event events",
	"ep endpoints", "ing ingress ingresses", "netpol networkpolicy networkpolicies", "pv persistentvolume persistentvolumes",
	"pvc persistentvolumeclaim persistentvolumeclaims", "sa serviceaccount serviceaccounts", "sc storageclass storageclasses",
	"hpa horizontalpodautoscaler horizontalpodautoscalers", "pdb poddisruptionbudget poddisruptionbudgets",
	"crd crds customresourcedefinition customresourcedefinitions", "role roles", "rolebinding rolebindings",
	"clusterrole clusterroles", "clusterrolebinding clusterrolebindings", "quota resourcequota resourcequotas",
	"limits limitrange limitranges", "rc replicationcontroller replicationcontrollers", "csr certificatesigningrequest certificatesigningrequests",
	"pc priorityclass priorityclasses", "lease leases")

// plurals reads rows whose last word is the plural of all of them.
func plurals(rows ...string) map[string]string {
	names := map[string]string{}
	for _, row := range rows {
		all := strings.Fields(row)
		for _, name := range all {
			names[name] = all[len(all)-1]
		}
	}
	return names
}
