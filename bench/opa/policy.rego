# The rules of bench/gatewright/policy.yaml. The tables are in data.json, as they would come from a bundle.
package gatewright.review

call := input.request

# What no rule below speaks of is not allowed.
default decision := {"outcome": "Block", "reasons": ["Undecided"]}

decision := {"outcome": "Allow", "reasons": []} if {
	count(reasons) == 0
}

decision := {"outcome": "Block", "reasons": reasons} if {
	count(reasons) > 0
}

tool := data.tools[call.tool.name]

reasons contains "UnknownTool" if not data.tools[call.tool.name]

reasons contains "Forbidden" if data.classes[tool.class].forbidden

reasons contains "MissingScope" if {
	some scope in tool.requiredScopes
	not scope in data.grants[input.caller]
}

reasons contains "PathNotAllowed" if {
	some name, roots in tool.paths
	not path_allowed(call.arguments[name], roots)
}

reasons contains "HostNotAllowed" if {
	some name, hosts in tool.hosts
	not host_allowed(call.arguments[name], hosts)
}

path_allowed(path, roots) if {
	not contains(path, "..")
	not contains(path, "%")
	some root in roots
	startswith(path, concat("", [root, "/"]))
}

host_allowed(url, hosts) if {
	some host in hosts
	startswith(url, concat("", ["https://", host, "/"]))
}
