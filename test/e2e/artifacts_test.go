//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// artifacts has the same file come by each of the ways that a DeciderModel may name.
func (c *cluster) artifacts(t *testing.T) {
	pinned := c.putModel(t, modelFile, func(b []byte) []byte { return b })
	c.serveOutside(t)
	image := "localhost/model@" + c.digest(t, "model")
	address := "https://models.outside.svc:8443/" + modelFile
	for _, from := range []struct{ name, artifact, says string }{
		{"by-image", "type: OCI, oci: {image: " + image + ", path: models/" + modelFile + "}", "an image volume, by digest"},
		{"by-url", "type: URL, url: " + address, "a download, from a server whose authority is in an image of ours that the company has added to"},
		{"bundled", "type: Bundled, bundled: {name: " + modelFile + "}", "a decider image of one's own"},
	} {
		c.model(t, from.name, from.artifact, pinned)
		took := c.ready(t, from.name)
		if verified := c.condition(t, from.name, "Verified"); !strings.HasPrefix(verified, "True Verified") {
			t.Fatalf("%s: %s", from.name, verified)
		}
		got := c.decides(t, from.name, ship("A-"+from.name))
		c.note(t, "%s: Ready after %.1f s, Verified=True, `parcels.ship` is %s by its answer", from.says, took.Seconds(), got.Outcome)
	}
	c.wrongArtifacts(t, pinned, address)
	c.decides(t, "smol", ship("A-0"))
	c.kubectl(t, "delete", "decidermodel", "by-image", "by-url", "bundled", "--wait=true")
}

// wrongArtifacts asks for other bytes than there are.
func (c *cluster) wrongArtifacts(t *testing.T, pinned, address string) {
	t.Helper()
	wrong := strings.Repeat("0", 64)
	c.model(t, "other-url", "type: URL, url: "+address, wrong)
	c.model(t, "other-bundled", "type: Bundled, bundled: {name: "+modelFile+"}", wrong)
	c.model(t, "no-image", "type: OCI, oci: {image: 'localhost/model@sha256:"+wrong+"', path: models/"+modelFile+"}", pinned)
	for _, name := range []string{"other-url", "other-bundled"} {
		took := c.refused(t, name, "Verified", "HashMismatch", wrong, pinned)
		c.note(t, "%s with another hash than pinned: Verified=False with both hashes after %.1f s", strings.TrimPrefix(name, "other-"), took.Seconds())
	}
	c.refused(t, "no-image", "Available", "Unavailable", "sha256:"+wrong)
	c.note(t, "an image volume of which there is no such digest: %s", c.condition(t, "no-image", "Available"))
	c.kubectl(t, "delete", "decidermodel", "other-url", "other-bundled", "no-image", "--wait=true")
}

// digest is that of an image of the test, as the node knows it.
func (c *cluster) digest(t *testing.T, image string) string {
	t.Helper()
	out, err := c.run(t.Context(), "", filepath.Join(c.root, "hack/node/import.sh"), "--digest", "localhost/"+image+":e2e")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// serveOutside starts the servers of others.
func (c *cluster) serveOutside(t *testing.T) {
	t.Helper()
	c.kubectl(t, "create", "namespace", "outside")
	path, err := c.run(t.Context(), "", filepath.Join(c.root, "hack/node/pki.sh"), "server", "models", "DNS:models.outside.svc")
	if err != nil {
		t.Fatal(err)
	}
	path = strings.TrimSpace(path)
	c.kubectl(t, "-n", "outside", "create", "secret", "tls", "models", "--cert="+path+".crt", "--key="+path+".key")
	dir := t.TempDir()
	for name, data := range c.judgeCertificate(t) {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.kubectl(t, "-n", "outside", "create", "secret", "tls", "judge", "--cert="+filepath.Join(dir, "tls.crt"), "--key="+filepath.Join(dir, "tls.key"))
	c.kubectl(t, "-n", "outside", "create", "configmap", "judge-authority", "--from-file="+filepath.Join(dir, "ca.crt"))
	c.apply(t, file(t, "outside.yaml", "VOLUMES", filepath.Join(c.state, "volumes")))
	c.kubectl(t, "-n", "outside", "wait", "--for=condition=Ready", "pod", "--all", "--timeout=180s")
}
