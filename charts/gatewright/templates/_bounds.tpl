{{/* What the schema of the values cannot say. Each stops the rendering with the field and what to do. */}}

{{/* milliseconds of a duration as the schema lets it be: whole numbers with units */}}
{{- define "gatewright.milliseconds" -}}
{{- $units := dict "ms" 1 "s" 1000 "m" 60000 "h" 3600000 }}
{{- $sum := 0 }}
{{- range $part := regexFindAll "[0-9]+[a-z]+" . -1 }}
{{- $sum = add $sum (mul (int64 (regexFind "^[0-9]+" $part)) (get $units (regexFind "[a-z]+$" $part))) }}
{{- end }}
{{- $sum }}
{{- end }}

{{/* MiB of a size as the schema lets it be, with a fraction */}}
{{- define "gatewright.mebibytes" -}}
{{- $units := dict "" 1 "K" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 }}
{{- divf (mulf (float64 (regexFind "^[0-9.]+" .)) (get $units (regexFind "[A-Za-z]*$" .))) 1048576 }}
{{- end }}

{{- define "gatewright.checkGate" -}}
{{- $staleness := int64 (include "gatewright.milliseconds" .Values.gate.maxStaleness) }}
{{- if or (lt $staleness 1000) (gt $staleness 3600000) }}
{{- fail (printf "gate.maxStaleness is %s, and the gate takes 1s to 1h" .Values.gate.maxStaleness) }}
{{- end }}
{{- if gt (int64 (include "gatewright.milliseconds" .Values.gate.shutdownDelay)) 600000 }}
{{- fail (printf "gate.shutdownDelay is %s, and the gate takes at most 10m" .Values.gate.shutdownDelay) }}
{{- end }}
{{- $file := .Values.audit.file }}
{{- $most := add (int64 $file.keepMiB) (int64 $file.rotateMiB) }}
{{- if and (eq .Values.audit.sink "file") (gt (int64 $file.keepMiB) 0) (gt (int64 $file.rotateMiB) 0) (gt (float64 $most) (float64 (include "gatewright.mebibytes" $file.size))) }}
{{- fail (printf "audit.file.keepMiB and audit.file.rotateMiB are %d MiB together, more than audit.file.size %s holds: full files have to be deleted before the volume is full, so lower the one or raise the other" $most $file.size) }}
{{- end }}
{{- end }}

{{/* after the delay: calls that are under way have 20 s, and the rest is for what closes then */}}
{{- define "gatewright.gracePeriod" -}}
{{- add 40 (div (add 999 (int64 (include "gatewright.milliseconds" .Values.gate.shutdownDelay))) 1000) }}
{{- end }}

{{/* Ports of what takes records of the audit log over the network, each after a space. A sink in gate.extraArgs counts too. */}}
{{- define "gatewright.sinkPorts" -}}
{{- $addresses := list }}
{{- if eq .Values.audit.sink "nats" }}
{{- $addresses = append $addresses .Values.audit.nats.url }}
{{- end }}
{{- range .Values.gate.extraArgs }}
{{- $addresses = append $addresses (regexReplaceAll "^--?audit-sink=" . "") }}
{{- end }}
{{- $defaults := dict "otlp+http" "80" "otlp+https" "443" "nats" "4222" "tls" "4222" }}
{{- range $address := $addresses }}
{{- $scheme := regexFind "^[a-z+]+:" $address | trimSuffix ":" }}
{{- if hasKey $defaults $scheme }}
{{- range $host := splitList "," (urlParse $address).host }}
{{- printf " %s" (regexFind ":[0-9]+$" $host | trimPrefix ":" | default (get $defaults $scheme)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* whether an entry of networkPolicy.external lets a port through, by number: (list ENTRY PORT) */}}
{{- define "gatewright.covers" -}}
{{- $port := int (index . 1) }}
{{- if not (index . 0).ports }}yes{{ end }}
{{- range (index . 0).ports }}
{{- $from := int (.port | default 1) }}
{{- $to := int (.endPort | default (ternary $from 65535 (hasKey . "port"))) }}
{{- if and (eq (.protocol | default "TCP") "TCP") (ge $port $from) (le $port $to) }}yes{{ end }}
{{- end }}
{{- end }}

{{- define "gatewright.checkNetwork" -}}
{{- range $port := splitList " " (include "gatewright.sinkPorts" . | trim) | compact }}
{{- $covered := empty $.Values.networkPolicy.external }}
{{- range $.Values.networkPolicy.external }}
{{- $covered = or $covered (contains "yes" (include "gatewright.covers" (list . $port))) }}
{{- end }}
{{- if not $covered }}
{{- fail (printf "networkPolicy.external has no entry with port %s, where the audit log goes: add one, or every call that changes something is blocked" $port) }}
{{- end }}
{{- end }}
{{- if and .Values.monitoring.serviceMonitor.enabled (not .Values.networkPolicy.monitoring) }}
{{- fail "monitoring.serviceMonitor.enabled needs networkPolicy.monitoring: the namespace of Prometheus, for example [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}], or no metrics are read" }}
{{- end }}
{{- end }}
