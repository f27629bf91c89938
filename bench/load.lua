-- The load of one side: posts one ToolCallReview over and over, each time with a fresh uid (a UUIDv7), and counts the
-- answers that are not an Allow. Both sides run this file, so that making a request costs the same on both.
--
-- Arguments after --: the file with the request, "gate" or "opa", the path of the URL, and the bearer token ("" for none).

local threads = {}

function setup(thread)
  table.insert(threads, thread)
end

local function read(path)
  local file = assert(io.open(path, "r"))
  local text = file:read("*a")
  file:close()
  return text
end

-- seed: another one in each run, since a uid that was seen before is answered from memory.
local function seed()
  local file = assert(io.open("/dev/urandom", "rb"))
  local bytes = file:read(6)
  file:close()
  local n = 0
  for i = 1, #bytes do
    n = n * 256 + bytes:byte(i)
  end
  math.randomseed(n)
end

local format, random, time = string.format, math.random, os.time

-- uuid7: 48 bits of milliseconds (whole seconds do: a uid may be minutes old), version, variant, 74 random bits.
local function uuid7()
  local ms = time() * 1000
  local high, low = math.floor(ms / 65536), ms % 65536
  return format("%08x-%04x-7%03x-%04x-%04x%08x", high, low, random(0, 4095), random(0x8000, 0xbfff),
    random(0, 65535), random(0, 4294967295))
end

local head, tail, allow
wrong = 0
example = ""

function init(args)
  seed()
  local body = read(args[1])
  if args[2] == "opa" then
    body = '{"input": ' .. body:gsub("^%s*{", '{"caller": "system:serviceaccount:bench:agent", ', 1) .. "}"
  end
  allow = '"outcome":"Allow"'
  local headers = { ["Content-Type"] = "application/json" }
  if args[4] and args[4] ~= "" then
    headers["Authorization"] = "Bearer " .. args[4]
  end
  -- The length of the uid is fixed, so the request is put together once and cut at the uid.
  local marker = uuid7()
  local whole = wrk.format("POST", args[3], headers, (body:gsub("@UID@", marker)))
  local from, to = whole:find(marker, 1, true)
  head, tail = whole:sub(1, from - 1), whole:sub(to + 1)
end

function request()
  return head .. uuid7() .. tail
end

function response(status, headers, body)
  if status ~= 200 or not body:find(allow, 1, true) then
    wrong = wrong + 1
    if wrong == 1 then
      example = status .. " " .. body:sub(1, 300)
    end
  end
end

function done(summary, latency, requests)
  local bad = 0
  for _, thread in ipairs(threads) do
    bad = bad + thread:get("wrong")
    if thread:get("wrong") > 0 then
      io.write("# ", thread:get("example"), "\n")
    end
  end
  local errors = summary.errors
  io.write(format("RESULT requests=%d seconds=%.3f rps=%.1f p50us=%d p99us=%d wrong=%d errors=%d\n",
    summary.requests, summary.duration / 1e6, summary.requests / (summary.duration / 1e6),
    latency:percentile(50), latency:percentile(99), bad,
    errors.connect + errors.read + errors.write + errors.timeout))
end
