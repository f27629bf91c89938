{{/* Names are fixed: the parts know each other by them, and two installations in one cluster would judge each other's calls. */}}

{{- define "gatewright.labels" -}}
{{ include "gatewright.steadyLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* labels that an upgrade does not change */}}
{{- define "gatewright.steadyLabels" -}}
app.kubernetes.io/name: gatewright
app.kubernetes.io/part-of: gatewright
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* metadata of an object: (list $ NAME COMPONENT), or with an empty component */}}
{{- define "gatewright.metadata" -}}
{{- $root := index . 0 -}}
name: {{ index . 1 }}
namespace: {{ $root.Release.Namespace }}
labels:
  {{- include "gatewright.labels" $root | nindent 2 }}
  {{- with index . 2 }}
  app.kubernetes.io/component: {{ . }}
  {{- end }}
{{- end }}

{{/* the same without a namespace */}}
{{- define "gatewright.clusterMetadata" -}}
{{- $root := index . 0 -}}
name: {{ index . 1 }}
labels:
  {{- include "gatewright.labels" $root | nindent 2 }}
{{- end }}

{{- define "gatewright.selector" -}}
app.kubernetes.io/name: gatewright
app.kubernetes.io/component: {{ . }}
{{- end }}

{{/* an image: (list $ VALUES) */}}
{{- define "gatewright.image" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default $root.Chart.AppVersion }}
{{- end }}
{{- end }}

{{/* where pods run: (dict "root" $ "component" NAME "values" VALUES) */}}
{{- define "gatewright.placement" -}}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
topologySpreadConstraints:
- maxSkew: 1
  topologyKey: kubernetes.io/hostname
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- include "gatewright.selector" .component | nindent 6 }}
- maxSkew: 1
  topologyKey: topology.kubernetes.io/zone
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- include "gatewright.selector" .component | nindent 6 }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "gatewright.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "gatewright.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* The roles in a file of config/rbac, with the labels and the namespace of the installation: (list $ FILE) */}}
{{- define "gatewright.roles" -}}
{{- $root := index . 0 -}}
{{- range $document := splitList "\n---\n" ($root.Files.Get (index . 1)) }}
{{- $object := fromYaml (trimPrefix "---\n" $document) }}
{{- if $object.kind }}
---
apiVersion: {{ $object.apiVersion }}
kind: {{ $object.kind }}
metadata:
  name: {{ $object.metadata.name }}
  {{- if $object.metadata.namespace }}
  namespace: {{ $root.Release.Namespace }}
  {{- end }}
  labels:
    {{- include "gatewright.labels" $root | nindent 4 }}
rules:
{{ toYaml $object.rules }}
{{- end }}
{{- end }}
{{- end }}

{{/* flags; those that have the right default are left out */}}
{{- define "gatewright.managerArgs" -}}
- -namespace=$(POD_NAMESPACE)
- -log-level={{ .Values.manager.logLevel }}
- -tool-image={{ include "gatewright.image" (list $ .Values.image) }}
- -decider-image={{ include "gatewright.image" (list $ .Values.deciderImage) }}
{{- with .Values.imagePullSecrets }}
- -decider-pull-secret={{ (first .).name }}
{{- end }}
{{- range .Values.gate.dnsNames }}
- -gate-dns-name={{ . }}
{{- end }}
{{- if eq .Values.webhook.certificates "CertManager" }}
- -webhook-cert-source=cert-manager
{{- end }}
{{- end }}

{{- define "gatewright.gateArgs" -}}
- -namespace=$(POD_NAMESPACE)
- -log-level={{ .Values.gate.logLevel }}
- -cluster={{ .Values.clusterName }}
- -shutdown-delay={{ .Values.gate.shutdownDelay }}
- -max-staleness={{ .Values.gate.maxStaleness }}
{{- if .Values.gate.authorizeTools }}
- -authorize-tools
{{- end }}
{{- if .Values.gate.console.enabled }}
- -console
{{- range .Values.gate.console.hosts }}
- -console-host={{ . }}
{{- end }}
{{- end }}
{{- if eq .Values.audit.sink "file" }}
- -audit-rotate-mib={{ int .Values.audit.file.rotateMiB }}
- -audit-keep-mib={{ int .Values.audit.file.keepMiB }}
{{- else }}
- -audit-log=none
- -audit-checkpoints=/var/lib/gatewright/audit.checkpoints
- -audit-sink={{ ternary (include "gatewright.natsLog" .) "stdout" (eq .Values.audit.sink "nats") }}
{{- end }}
{{- end }}

{{/* Each gate has a log of its own in the stream: two on one subject would break each other's chain. */}}
{{- define "gatewright.natsLog" -}}
{{- printf "%s?subject=%s.$(POD_NAME)" .Values.audit.nats.url (regexFind "[^/]*$" .Values.audit.nats.url) }}
{{- end }}

{{/* The objects in a file of config/, for the namespace of the installation: (dict "root" $ "file" FILE "annotations" MAP "skip" KIND).
     Their labels are steady, since the gate honours no approval that is older than the last write of the policy that guards it. */}}
{{- define "gatewright.copied" -}}
{{- $root := .root }}
{{- $annotations := .annotations | default dict }}
{{- $skip := .skip | default "" }}
{{- $content := $root.Files.Get .file | replace "gatewright-system" $root.Release.Namespace }}
{{- range $document := splitList "\n---\n" $content }}
{{- $object := fromYaml (trimPrefix "---\n" $document) }}
{{- if and $object.kind (ne $object.kind $skip) }}
{{- $own := $object.metadata.labels | default dict }}
{{- $labels := merge (fromYaml (include "gatewright.steadyLabels" $root)) $own }}
{{- $_ := set $object.metadata "labels" $labels }}
{{- if $annotations }}
{{- $_ := set $object.metadata "annotations" (merge $annotations ($object.metadata.annotations | default dict)) }}
{{- end }}
---
{{ toYaml $object }}
{{- end }}
{{- end }}
{{- end }}
