package kubectl_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/internal/policy/effects/effect"
	"gatewright.dev/gatewright/internal/policy/effects/kubectl"
)

const (
	read   = effect.Reads
	write  = effect.Reads | effect.Writes
	remove = effect.Reads | effect.Writes | effect.Deletes
)

func TestParse(t *testing.T) {
	tests := map[string]struct {
		line string
		want kubectl.Result
	}{
		"pods of a namespace": {"kubectl get pods -n a",
			kubectl.Result{Effects: read, Verb: "get", Resources: []string{"pods"}, Names: []string{"*"}, Namespace: "a", NamedNamespace: "a"}},
		"the leading kubectl may be missing": {"get po",
			kubectl.Result{Effects: read, Verb: "get", Resources: []string{"pods"}, Names: []string{"*"}}},
		"the namespace may stand first": {"kubectl -n a get svc x y",
			kubectl.Result{Effects: read, Verb: "get", Resources: []string{"services"}, Names: []string{"x", "y"}, Namespace: "a", NamedNamespace: "a"}},
		"the namespace may stick to its letter": {"kubectl get pods -na",
			kubectl.Result{Effects: read, Verb: "get", Resources: []string{"pods"}, Names: []string{"*"}, Namespace: "a", NamedNamespace: "a"}},
		"all namespaces in a cluster of letters": {"kubectl get pods -Aowide",
			kubectl.Result{Effects: read, Verb: "get", Resources: []string{"pods"}, Names: []string{"*"}, AllNamespaces: true}},
		"a secret is named as such": {"kubectl get secret/db pod/web -o yaml",
			kubectl.Result{Effects: read, Verb: "get", Resources: []string{"secrets", "pods"}, Names: []string{"db", "web"}}},
		"a secret in upper case with its version": {"kubectl get Secrets.v1. x",
			kubectl.Result{Effects: read, Verb: "get", Resources: []string{"secrets", "secrets.v1."}, Names: []string{"x"}}},
		"a list of kinds": {"kubectl get po,secret",
			kubectl.Result{Effects: read, Verb: "get", Resources: []string{"pods", "secrets"}, Names: []string{"*"}}},
		"logs are of pods": {"kubectl logs web -c app --tail=5 -f",
			kubectl.Result{Effects: read, Verb: "logs", Resources: []string{"pods"}, Names: []string{"web"}}},
		"logs of a deployment": {"kubectl logs deploy/web",
			kubectl.Result{Effects: read, Verb: "logs", Resources: []string{"deployments"}, Names: []string{"web"}}},
		"use of nodes": {"kubectl top nodes", kubectl.Result{Effects: read, Verb: "top nodes", Resources: []string{"nodes"}, Names: []string{"*"}}},
		"may I": {"kubectl auth can-i delete pods",
			kubectl.Result{Effects: read, Verb: "auth can-i", Names: []string{"delete", "pods"}}},
		"a flag of its own takes no word": {"kubectl delete --cascade secrets pods x",
			kubectl.Result{Effects: remove, Verb: "delete", Resources: []string{"secrets"}, Names: []string{"pods", "x"}, Why: "the verb delete is more than a read"}},
		"another flag of its own takes no word": {"kubectl patch --validate secrets pods -p x --dry-run=server",
			kubectl.Result{Effects: write, Verb: "patch", Resources: []string{"secrets"}, Names: []string{"pods"}, Why: "the verb patch is more than a read"}},
		"a created secret": {"kubectl create secret generic x --from-literal=a=b",
			kubectl.Result{Effects: write, Verb: "create", Resources: []string{"secrets"}, Names: []string{"generic", "x"}, Why: "the verb create is more than a read"}},
		"quotes hide nothing": {`kubectl g"et" 'pods'`, kubectl.Result{Effects: read, Verb: "get", Resources: []string{"pods"}, Names: []string{"*"}}},
		"a switch with a value": {"kubectl get pods -A=false",
			kubectl.Result{Effects: read, Verb: "get", Resources: []string{"pods"}, Names: []string{"*"}}},
		"apply writes": {"kubectl apply -f a.yaml -n a",
			kubectl.Result{Effects: write, Verb: "apply", Resources: []string{"*"}, Names: []string{"*"}, Namespace: "a", NamedNamespace: "a", Paths: []string{"a.yaml"}, Why: "the verb apply is more than a read"}},
		"apply with prune deletes": {"kubectl apply -f a.yaml --prune --all",
			kubectl.Result{Effects: remove, Verb: "apply", Resources: []string{"*"}, Names: []string{"*"}, Paths: []string{"a.yaml"}, Why: "the flag prune deletes"}},
		"replace with force deletes": {"kubectl replace --force -f -",
			kubectl.Result{Effects: remove, Verb: "replace", Resources: []string{"*"}, Names: []string{"*"}, Why: "the flag force deletes"}},
		"scale writes": {"kubectl scale deploy/web --replicas 0",
			kubectl.Result{Effects: write, Verb: "scale", Resources: []string{"deployments"}, Names: []string{"web"}, Why: "the verb scale is more than a read"}},
		"label leaves its pairs out": {"kubectl label pod web a=b c-",
			kubectl.Result{Effects: write, Verb: "label", Resources: []string{"pods"}, Names: []string{"web"}, Why: "the verb label is more than a read"}},
		"restart writes": {"kubectl rollout restart deploy web",
			kubectl.Result{Effects: write, Verb: "rollout restart", Resources: []string{"deployments"}, Names: []string{"web"}, Why: "the verb rollout restart is more than a read"}},
		"pods by label are not named": {"kubectl delete pods -l app=web -n a",
			kubectl.Result{Effects: remove, Verb: "delete", Resources: []string{"pods"}, Names: []string{"*"}, Namespace: "a", NamedNamespace: "a", Why: "the verb delete is more than a read"}},
		"namespaces by field are not named": {"kubectl delete ns --field-selector metadata.name=x",
			kubectl.Result{Effects: remove, Verb: "delete", Resources: []string{"namespaces"}, Names: []string{"*"}, Why: "the verb delete is more than a read"}},
		"all of a kind are more than the named": {"kubectl label pods web a=b --all",
			kubectl.Result{Effects: write, Verb: "label", Resources: []string{"pods"}, Names: []string{"web", "*"}, Why: "the verb label is more than a read"}},
		"a label behind a name": {"kubectl get pods web -lapp=web",
			kubectl.Result{Effects: read, Verb: "get", Resources: []string{"pods"}, Names: []string{"web", "*"}}},
		"a kind that lies in no namespace": {"kubectl delete ns x -n a",
			kubectl.Result{Effects: remove, Verb: "delete", Resources: []string{"namespaces"}, Names: []string{"x"}, NamedNamespace: "a", Why: "the verb delete is more than a read"}},
		"one kind of two that lies in no namespace": {"kubectl delete pod/x clusterrole/y -n a",
			kubectl.Result{Effects: remove, Verb: "delete", Resources: []string{"pods", "clusterroles"}, Names: []string{"x", "y"}, NamedNamespace: "a", Why: "the verb delete is more than a read"}},
		"a node is in no namespace": {"kubectl drain n1 -n a",
			kubectl.Result{Effects: remove, Verb: "drain", Resources: []string{"nodes"}, Names: []string{"n1"}, NamedNamespace: "a", Why: "the verb drain is more than a read"}},
		"all namespaces outweigh one": {"kubectl get pods x -n a -A",
			kubectl.Result{Effects: read, Verb: "get", Resources: []string{"pods"}, Names: []string{"x"}, AllNamespaces: true, NamedNamespace: "a"}},
		"a denied request": {"kubectl certificate deny x",
			kubectl.Result{Effects: write, Verb: "certificate deny", Resources: []string{"certificatesigningrequests"}, Names: []string{"x"}, Why: "the verb certificate deny is more than a read"}},
		"a namespace is deleted": {"kubectl delete ns x",
			kubectl.Result{Effects: remove, Verb: "delete", Resources: []string{"namespaces"}, Names: []string{"x"}, Why: "the verb delete is more than a read"}},
		"a node is drained": {"kubectl drain n1 --force",
			kubectl.Result{Effects: remove, Verb: "drain", Resources: []string{"nodes"}, Names: []string{"n1"}, Why: "the verb drain is more than a read"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.want.Parsed = true
			if diff := cmp.Diff(test.want, kubectl.Parse(test.line)); diff != "" {
				t.Errorf("Parse(%q) (-want +got):\n%s", test.line, diff)
			}
		})
	}
}

func TestWorst(t *testing.T) {
	tests := map[string]struct{ line, wantWhy string }{
		"two commands":                         {"kubectl get pods; kubectl delete pods --all", "the text is not one command"},
		"a pipe":                               {"kubectl get pods | sh", "the text is not one plain command"},
		"a redirection":                        {"kubectl get pods > f", "the text is not one plain command"},
		"a variable before it":                 {"KUBECONFIG=x kubectl get pods", "the text is not one plain command"},
		"a command in the background":          {"kubectl get pods &", "the text is not one plain command"},
		"a substitution":                       {"kubectl get $(rm x)", "a word depends on an expansion"},
		"braces":                               {"kubectl {get,pods}", "a word holds a brace expansion"},
		"a pattern":                            {"kubectl get p*", "a word is a pattern of file names"},
		"nothing":                              {"", "the text is not one command"},
		"kubectl alone":                        {"kubectl", "the verb is not in the table"},
		"a flag alone":                         {"kubectl -n", "the verb is not in the table"},
		"a verb in upper case":                 {"kubectl GET pods", "the verb is not in the table"},
		"exec":                                 {"kubectl exec web -- ls", "the verb is not in the table"},
		"cp":                                   {"kubectl cp a:b c", "the verb is not in the table"},
		"port-forward":                         {"kubectl port-forward web 80", "the verb is not in the table"},
		"proxy":                                {"kubectl proxy", "the verb is not in the table"},
		"run":                                  {"kubectl run x --image=y", "the verb is not in the table"},
		"debug":                                {"kubectl debug web", "the verb is not in the table"},
		"edit":                                 {"kubectl edit cm x", "the verb is not in the table"},
		"a plugin":                             {"kubectl neat", "the verb is not in the table"},
		"another program":                      {"helm get pods", "the verb is not in the table"},
		"kubectl in the current folder":        {"./kubectl get pods", "the verb is not in the table"},
		"a raw path":                           {"kubectl get --raw /api", "a flag is not in the table"},
		"another configuration":                {"kubectl get pods --kubeconfig=x", "a flag is not in the table"},
		"another configuration first":          {"kubectl --kubeconfig get delete pods", "the verb is not in the table"},
		"a flag before the verb eats a word":   {"kubectl -A get delete pods", "the verb is not in the table"},
		"another server":                       {"kubectl get pods -s http://x", "a flag is not in the table"},
		"another token":                        {"kubectl get pods --token x", "a flag is not in the table"},
		"another user":                         {"kubectl get pods --as=root", "a flag is not in the table"},
		"another context":                      {"kubectl get pods --context prod", "a flag is not in the table"},
		"an underscore in a flag":              {"kubectl get pods --all_namespaces", "a flag is not in the table"},
		"a shortened flag":                     {"kubectl get pods --name x", "a flag is not in the table"},
		"a manifest to get":                    {"kubectl get -f x", "a flag is not in the table"},
		"a second word behind apply":           {"kubectl apply view-last-applied secret x", "an argument is not expected here"},
		"an editor behind apply":               {"kubectl apply edit-last-applied deploy/x", "an argument is not expected here"},
		"a template in a file":                 {"kubectl get pods -o go-template-file=x", "the output format reads a file or is unknown"},
		"columns in a file":                    {"kubectl get pods -ocustom-columns-file=x", "the output format reads a file or is unknown"},
		"two namespaces":                       {"kubectl get pods -n a --namespace b", "a flag is given twice"},
		"an empty namespace":                   {"kubectl get pods -n ''", "the namespace is empty"},
		"a switch that is neither":             {"kubectl get pods --watch=2", "a switch has an unknown value"},
		"a flag without its value":             {"kubectl get pods -o", "a flag has no value"},
		"a long flag without its value":        {"kubectl get pods --output", "a flag has no value"},
		"a manifest from the network":          {"kubectl apply -f https://x/y", "a manifest comes from the network"},
		"a manifest built by plugins":          {"kubectl apply -k x", "a flag is not in the table"},
		"an issued credential":                 {"kubectl create token x", "a credential is issued"},
		"a plugin that creates":                {"kubectl create neat x", "a kind to create is not in the table"},
		"a live object behind a manifest":      {"kubectl wait -f a.yaml --for=jsonpath='{.kind}'=Secret -o yaml", "a manifest may name any object, a secret included"},
		"a difference from a live object":      {"kubectl diff -f a.yaml", "a manifest may name any object, a secret included"},
		"an argument that is not expected":     {"kubectl version x", "an argument is not expected here"},
		"a kind with look-alike letters":       {"kubectl get ſecrets", "a kind of object has an unknown form"},
		"an empty kind":                        {"kubectl get ,pods", "a kind of object is empty"},
		"too many names":                       {"kubectl get pods" + strings.Repeat(" x", 257), "the command names too many objects"},
		"too many kinds":                       {"kubectl get " + strings.Repeat("a,", 257) + "a", "the command names too many objects"},
		"a verb of two words with flags in it": {"kubectl top -A pods", "the verb is not in the table"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			want := kubectl.Result{Effects: effect.Worst, Why: test.wantWhy}
			if diff := cmp.Diff(want, kubectl.Parse(test.line)); diff != "" {
				t.Errorf("Parse(%q) (-want +got):\n%s", test.line, diff)
			}
		})
	}
}

func FuzzKubectl(f *testing.F) {
	for _, line := range []string{"kubectl get pods -n a", "kubectl delete ns x", "get pods; kubectl delete", "kubectl -A get x",
		"kubectl get -o", "kubectl apply -f - --prune=false", "kubectl logs 'a'\"b\"", "kubectl get pods -- -x", "kubectl label po a b="} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		r := kubectl.Parse(line)
		if diff := cmp.Diff(r, kubectl.Parse(line)); diff != "" {
			t.Errorf("judging twice differs:\n%s", diff)
		}
		if !r.Parsed && r.Effects != effect.Worst {
			t.Errorf("not parsed, yet %v", r.Effects)
		}
		if r.Effects.IsRead() != (r.Why == "") {
			t.Errorf("read = %v, but why = %q", r.Effects.IsRead(), r.Why)
		}
		if kubectl.Parse(line+"; kubectl delete ns x").Effects.IsRead() && !strings.Contains(line, "#") {
			t.Error("a deletion behind it is still a read")
		}
	})
}
