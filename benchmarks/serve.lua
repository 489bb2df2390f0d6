-- Bodies for wrk against `aria serve`: a line of the file BODIES a request, each {"items": [...]}.
-- BODIES=bodies.jsonl wrk -t1 -c16 -d10s --latency -s benchmarks/serve.lua URL/score_dialogues

local bodies, turn, refused = {}, 0, {}
for line in io.lines(os.getenv("BODIES")) do
  bodies[#bodies + 1] = line
end

function request()
  turn = turn % #bodies + 1
  return wrk.format("POST", nil, { ["Content-Type"] = "application/json" }, bodies[turn])
end

function response(status)
  if status ~= 200 then
    refused[status] = (refused[status] or 0) + 1
    wrk.thread:set("refused_" .. status, refused[status])
  end
end

local threads = {}
function setup(thread)
  threads[#threads + 1] = thread
end

function done(summary, latency)
  local p50, p99 = latency:percentile(50) / 1000, latency:percentile(99) / 1000
  print(string.format("answered %d in %.1f s, p50 %.1f ms, p99 %.1f ms", summary.requests,
    summary.duration / 1e6, p50, p99))
  for _, thread in ipairs(threads) do
    for _, status in ipairs({ 408, 413, 422, 429, 503 }) do
      local count = thread:get("refused_" .. status)
      if count then
        print(string.format("of them %d with status %d", count, status))
      end
    end
  end
end
