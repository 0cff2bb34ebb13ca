-- For wrk: sends as many requests at a time as its first argument says (16), before any answer.
--   wrk -t2 -c50 -d1s -s tests/outside/pipeline.lua http://127.0.0.1:3000/ -- 16

local requests

function init(args)
  local depth = tonumber(args[1]) or 16
  requests = string.rep(wrk.format("GET", "/"), depth)
end

function request()
  return requests
end
