-- Stillwater's packets in Wireshark and tshark: version 1 of the format, as ARCHITECTURE.md, section 2, has it.
--
--   tshark -X lua_script:wire/stillwater.lua -r x.pcapng
--   tshark -X lua_script:wire/stillwater.lua -r x.pcapng -Y 'stillwater.type == 5' -T fields -e stillwater.number -e stillwater.reason
--
-- It takes UDP port 7700 for ours ("Decode As" names others), and knows our packets on any port by their form. The tables that
-- follow are compared with the Go code by its tests (wire/dissector_test.go): one line is one message or one list of names.

local VERSION, HEADER, TAG, MESSAGE_HEADER, PORT = 1, 28, 16, 8, 7700

-- Messages by type: their fixed part as {offset, size, field}; then what flags announce, in this order, as {flag, {size, field}...};
-- metadata has its length before it; and whether a payload takes the rest.
local messages = {
    [1] = { name = "request", size = 40, {8, 8, "number"}, {16, 8, "next"}, {24, 8, "method"}, {32, 4, "seq"}, {36, 2, "slot"}, {38, 2, "demand"}, payload = true },
    [2] = { name = "register", size = 40, {8, 8, "number"}, {16, 8, "next"}, {24, 8, "method"}, {32, 4, "seq"}, {36, 2, "slot"}, {38, 2, "demand"}, payload = true },
    [3] = { name = "registered", size = 24, {8, 4, "server_session"}, {12, 2, "slots"}, {14, 2, "reserved"}, {16, 4, "target_delay"}, {20, 4, "drop_threshold"} },
    [4] = { name = "reply", size = 44, {8, 8, "number"}, {16, 8, "limit"}, {24, 4, "seq"}, {28, 2, "slot"}, {30, 1, "status"}, {31, 1, "level"}, {32, 4, "packet_queue"}, {36, 4, "request_queue"}, {40, 4, "service"}, payload = true },
    [5] = { name = "reject", size = 36, {8, 8, "number"}, {16, 8, "limit"}, {24, 4, "seq"}, {28, 2, "slot"}, {30, 1, "reason"}, {31, 1, "advice"}, {32, 1, "level"}, {33, 1, "reserved"}, {34, 2, "retry_after"} },
    [6] = { name = "busy", size = 20, {8, 8, "number"}, {16, 2, "slot"}, {18, 2, "reserved"} },
    [7] = { name = "credit update", size = 20, {8, 8, "limit"}, {16, 4, "seq"} },
    [8] = { name = "probe", size = 24, {8, 8, "next"}, {16, 4, "seq"}, {20, 2, "demand"}, {22, 2, "reserved"} },
    [9] = { name = "deregister", size = 20, {8, 8, "next"}, {16, 4, "seq"} },
    [10] = { name = "cancel", size = 20, {8, 8, "number"}, {16, 2, "slot"}, {18, 2, "reserved"} },
    [11] = { name = "open", size = 16, {8, 8, "connection"} },
    [12] = { name = "accept", size = 48, {8, 8, "connection"}, {16, 32, "token"} },
    [13] = { name = "retry", size = 40, {8, 32, "token"} },
    [14] = { name = "gone", size = 16, {8, 8, "connection"} },
    [15] = { name = "fragment", size = 8, payload = true },
    [16] = { name = "ack", size = 8, payload = true },
    [17] = { name = "stream", size = 8, payload = true },
    [18] = { name = "window", size = 8, payload = true },
}
local optional = {
    [1] = { {0x01, {4, "budget"}}, {0x02, {1, "criticality"}, {1, "attempt"}, {1, "priority"}, {1, "attempts_left"}}, {0x04, {2, "metadata_length"}, {0, "metadata"}} },
    [2] = { {0x01, {4, "budget"}}, {0x02, {1, "criticality"}, {1, "attempt"}, {1, "priority"}, {1, "attempts_left"}}, {0x04, {2, "metadata_length"}, {0, "metadata"}} },
    [11] = { {0x01, {32, "token"}} },
}
local statuses = { [0] = "ok", [1] = "handler error", [2] = "panic", [3] = "too large", [4] = "unavailable" }
local reasons = { [1] = "overloaded", [2] = "expired", [3] = "over limit", [4] = "unknown method", [5] = "draining", [6] = "cancelled", [7] = "no slot", [8] = "too large", [9] = "rate limited" }
local advices = { [0] = "none", [1] = "do not retry" }
local criticalities = { [0] = "unset", [1] = "sheddable", [2] = "sheddable plus", [3] = "critical", [4] = "critical plus" }

local types = {}
for number, message in pairs(messages) do types[number] = message.name end

local stillwater = Proto("stillwater", "Stillwater RPC")

local f = {
    version = ProtoField.uint8("stillwater.version", "Version", base.DEC, nil, 0xf0),
    flags = ProtoField.uint8("stillwater.flags", "Flags", base.HEX),
    sealed = ProtoField.bool("stillwater.flags.sealed", "Sealed", 8, nil, 0x01),
    key_phase = ProtoField.bool("stillwater.flags.key_phase", "Key phase", 8, nil, 0x02),
    handshake = ProtoField.bool("stillwater.flags.handshake", "Handshake", 8, nil, 0x04),
    length = ProtoField.uint16("stillwater.length", "Length of the messages", base.DEC),
    receiver = ProtoField.uint64("stillwater.receiver", "Connection id, the receiver's", base.HEX),
    packet_number = ProtoField.uint64("stillwater.packet_number", "Packet number", base.DEC),
    stamp = ProtoField.uint32("stillwater.stamp", "Stamp (ns)", base.DEC),
    echo = ProtoField.uint32("stillwater.echo", "Echo (ns)", base.DEC),
    padding = ProtoField.bytes("stillwater.padding", "Padding"),
    tag = ProtoField.bytes("stillwater.tag", "Tag"),
    ciphertext = ProtoField.bytes("stillwater.ciphertext", "Sealed"),

    message = ProtoField.none("stillwater.message", "Message"),
    type = ProtoField.uint8("stillwater.type", "Type", base.DEC, types),
    message_flags = ProtoField.uint8("stillwater.message_flags", "Flags", base.HEX),
    has_budget = ProtoField.bool("stillwater.message_flags.budget", "Budget", 8, nil, 0x01),
    has_class = ProtoField.bool("stillwater.message_flags.class", "Criticality, attempt, priority and attempts left", 8, nil, 0x02),
    has_metadata = ProtoField.bool("stillwater.message_flags.metadata", "Metadata", 8, nil, 0x04),
    unasked = ProtoField.bool("stillwater.message_flags.unasked", "Without a credit", 8, nil, 0x08),
    retransmission = ProtoField.bool("stillwater.message_flags.retransmission", "Retransmission", 8, nil, 0x80),
    has_token = ProtoField.bool("stillwater.message_flags.token", "Token", 8, nil, 0x01),
    message_length = ProtoField.uint16("stillwater.message_length", "Length", base.DEC),
    session = ProtoField.uint32("stillwater.session", "Session, the receiver's handle", base.HEX),

    number = ProtoField.uint64("stillwater.number", "Number", base.DEC),
    next = ProtoField.uint64("stillwater.next", "Next number", base.DEC),
    limit = ProtoField.uint64("stillwater.limit", "Credit limit", base.DEC),
    method = ProtoField.uint64("stillwater.method", "Method", base.HEX),
    method_name = ProtoField.string("stillwater.method_name", "Method name"),
    seq = ProtoField.uint32("stillwater.seq", "Sequence of the limit", base.DEC),
    slot = ProtoField.uint16("stillwater.slot", "Slot", base.DEC),
    slots = ProtoField.uint16("stillwater.slots", "Slots", base.DEC),
    demand = ProtoField.uint16("stillwater.demand", "Demand", base.DEC),
    budget = ProtoField.uint32("stillwater.budget_us", "Budget (us)", base.DEC),
    criticality = ProtoField.uint8("stillwater.criticality", "Criticality", base.DEC, criticalities),
    attempt = ProtoField.uint8("stillwater.attempt", "Attempt", base.DEC),
    priority = ProtoField.uint8("stillwater.priority", "Priority", base.DEC),
    attempts_left = ProtoField.uint8("stillwater.attempts_left", "Attempts left", base.DEC),
    metadata_length = ProtoField.uint16("stillwater.metadata_length", "Length of the metadata", base.DEC),
    metadata = ProtoField.bytes("stillwater.metadata", "Metadata"),
    server_session = ProtoField.uint32("stillwater.server_session", "Session, the server's handle", base.HEX),
    target_delay = ProtoField.uint32("stillwater.target_delay_us", "Target delay (us)", base.DEC),
    drop_threshold = ProtoField.uint32("stillwater.drop_threshold_us", "Drop threshold (us)", base.DEC),
    status = ProtoField.uint8("stillwater.status", "Status", base.DEC, statuses),
    packet_queue = ProtoField.uint32("stillwater.packet_queue_ns", "Packet queue (ns)", base.DEC),
    request_queue = ProtoField.uint32("stillwater.request_queue_ns", "Request queue (ns)", base.DEC),
    service = ProtoField.uint32("stillwater.service_ns", "Service (ns)", base.DEC),
    reason = ProtoField.uint8("stillwater.reason", "Reason", base.DEC, reasons),
    advice = ProtoField.uint8("stillwater.advice", "Advice", base.DEC, advices),
    level = ProtoField.uint8("stillwater.level", "Priorities above this are shed", base.DEC),
    retry_after = ProtoField.uint16("stillwater.retry_after_10us", "Retry after (10 us)", base.DEC),
    connection = ProtoField.uint64("stillwater.connection", "Connection id", base.HEX),
    token = ProtoField.bytes("stillwater.token", "Token"),
    reserved = ProtoField.bytes("stillwater.reserved", "Reserved"),
    payload = ProtoField.bytes("stillwater.payload", "Payload"),
}
stillwater.fields = f

local malformed = ProtoExpert.new("stillwater.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
local unknown = ProtoExpert.new("stillwater.unknown", "Unknown message, skipped by its length", expert.group.UNDECODED, expert.severity.WARN)
local cut = ProtoExpert.new("stillwater.cut", "The capture did not keep the rest", expert.group.UNDECODED, expert.severity.NOTE)
stillwater.experts = { malformed, unknown, cut }

-- A method is the 64-bit FNV-1a hash of its name, so names are only known beforehand.
stillwater.prefs.methods = Pref.string("Names of methods", "echo sleep spin work", "Separated by blanks; others are shown as their hash")
local methods = {}

local function hash(name)
    local h, prime = UInt64.new(0x84222325, 0xcbf29ce4), UInt64.new(0x1b3, 0x100)
    for i = 1, #name do h = h:bxor(UInt64.new(name:byte(i), 0)) * prime end
    return h:tohex()
end

local function name_methods()
    methods = {}
    for name in stillwater.prefs.methods:gmatch("%S+") do methods[hash(name)] = name end
end
stillwater.prefs_changed = name_methods
name_methods()

local function has(flags, mask) return math.floor(flags / mask) % 2 == 1 end

-- add shows a field, and returns its bytes; nil = the capture has cut them off.
local function add(tree, tvb, field, at, size)
    if at + size > tvb:captured_len() then
        tree:add_proto_expert_info(cut)
        return nil
    end
    tree:add(f[field], tvb(at, size))
    return tvb(at, size)
end

-- What the info column says of a message's field; nil = nothing.
local summary = {
    number = function(range) return "#" .. tostring(range:uint64()) end,
    limit = function(range) return "limit " .. tostring(range:uint64()) end,
    method = function(range) return methods[range:uint64():tohex()] end,
    status = function(range) return range:uint() ~= 0 and (statuses[range:uint()] or "status " .. range:uint()) or nil end,
    reason = function(range) return reasons[range:uint()] or "reason " .. range:uint() end,
}

local function dissect_field(tree, tvb, field, at, size, info)
    local range = add(tree, tvb, field, at, size)
    if not range then return false end
    if field == "method" and methods[range:uint64():tohex()] then
        tree:add(f.method_name, range, methods[range:uint64():tohex()]):set_generated()
    end
    local words = summary[field] and summary[field](range)
    if words then info[#info + 1] = words end
    return true
end

-- dissect_optional takes what the flags announce, and returns where the payload begins; nil = the message is too short for it, or cut.
local function dissect_optional(tree, tvb, kind, flags, at, last, info)
    for _, group in ipairs(optional[kind] or {}) do
        if has(flags, group[1]) then
            local length = 0
            for i = 2, #group do
                local size, field = group[i][1], group[i][2]
                if field == "metadata" then size = length end
                if at + size > last then
                    tree:add_proto_expert_info(malformed, "The message is too short for what its flags announce")
                    return nil
                end
                if size > 0 and not dissect_field(tree, tvb, field, at, size, info) then return nil end
                if field == "metadata_length" then length = tvb(at, size):uint() end
                at = at + size
            end
        end
    end
    return at
end

local function dissect_flags(tree, tvb, kind, at)
    local item = tree:add(f.message_flags, tvb(at, 1))
    local names = {}
    if kind == 1 or kind == 2 then names = { "has_budget", "has_class", "has_metadata", "unasked", "retransmission" } end
    if kind == 11 then names = { "has_token" } end
    for _, name in ipairs(names) do item:add(f[name], tvb(at, 1)) end
end

local function dissect_body(tree, tvb, kind, flags, at, length, info)
    local layout = messages[kind]
    if not layout then
        tree:add_proto_expert_info(unknown)
        return
    end
    if length < layout.size then
        tree:add_proto_expert_info(malformed, "A message of " .. length .. " bytes; its type has at least " .. layout.size)
        return
    end
    for _, field in ipairs(layout) do
        if not dissect_field(tree, tvb, field[3], at + field[1], field[2], info) then return end
    end
    if (kind == 1 or kind == 2) and has(flags, 0x80) then info[#info + 1] = "again" end
    local rest, last = dissect_optional(tree, tvb, kind, flags, at + layout.size, at + length, info), at + length
    if not rest or rest == last then return end
    if layout.payload then
        local kept = math.min(last, tvb:captured_len()) - rest
        if kept > 0 then tree:add(f.payload, tvb(rest, kept)) end
        if rest + kept < last then tree:add_proto_expert_info(cut) end
    else
        tree:add_proto_expert_info(malformed, "A message of " .. length .. " bytes; its type has " .. rest - at)
    end
end

-- dissect_message takes the message at a place, and returns where the next one begins; nil = there is none that can be found.
local function dissect_message(tree, tvb, at, last, infos)
    if at + MESSAGE_HEADER > math.min(last, tvb:captured_len()) then
        tree:add_proto_expert_info(at + MESSAGE_HEADER > last and malformed or cut)
        return nil
    end
    local kind, flags, length = tvb(at, 1):uint(), tvb(at + 1, 1):uint(), tvb(at + 2, 2):uint()
    local name = types[kind] or "unknown message " .. kind
    if length < MESSAGE_HEADER or at + length > last then
        tree:add_proto_expert_info(malformed, "A message of " .. length .. " bytes, where there are " .. last - at)
        return nil
    end
    local item = tree:add(f.message, tvb(at, math.min(length, tvb:captured_len() - at)))
    item:add(f.type, tvb(at, 1))
    dissect_flags(item, tvb, kind, at + 1)
    item:add(f.message_length, tvb(at + 2, 2))
    item:add(f.session, tvb(at + 4, 4))
    local info = { name }
    dissect_body(item, tvb, kind, flags, at, length, info)
    item:set_text("Message: " .. table.concat(info, " "))
    infos[#infos + 1] = table.concat(info, " ")
    return at + length
end

local function dissect_messages(tree, tvb, length)
    local at, last, infos = HEADER, HEADER + length, {}
    while at and at < last do at = dissect_message(tree, tvb, at, last, infos) end
    return infos
end

-- dissect_tail takes the padding and the tag, if the capture has kept them.
local function dissect_tail(tree, tvb, at)
    local tag = tvb:reported_len() - TAG
    if tvb:captured_len() < tvb:reported_len() then return end
    if tag > at then tree:add(f.padding, tvb(at, tag - at)) end
    tree:add(f.tag, tvb(tag, TAG))
end

local function dissect_header(tree, tvb)
    tree:add(f.version, tvb(0, 1))
    local flags = tree:add(f.flags, tvb(1, 1))
    for _, name in ipairs({ "sealed", "key_phase", "handshake" }) do flags:add(f[name], tvb(1, 1)) end
    tree:add(f.length, tvb(2, 2))
    tree:add(f.receiver, tvb(4, 8))
    tree:add(f.packet_number, tvb(12, 8))
end

-- ours reports whether the header can be one of ours: version, reserved bits, flags, length.
local function ours(tvb)
    return tvb:captured_len() >= HEADER and tvb:reported_len() >= HEADER + TAG and tvb(0, 1):uint() == VERSION * 16 and
        tvb(1, 1):uint() < 8 and tvb(2, 2):uint() <= tvb:reported_len() - HEADER - TAG
end

function stillwater.dissector(tvb, pinfo, root)
    if not ours(tvb) then return 0 end
    pinfo.cols.protocol = "Stillwater"
    local tree = root:add(stillwater, tvb())
    dissect_header(tree, tvb)
    local number = "packet " .. tostring(tvb(12, 8):uint64())
    if has(tvb(1, 1):uint(), 0x01) then
        tree:add(f.ciphertext, tvb(20))
        pinfo.cols.info = number .. ": sealed"
        return tvb:captured_len()
    end
    tree:add(f.stamp, tvb(20, 4))
    tree:add(f.echo, tvb(24, 4))
    local length = tvb(2, 2):uint()
    pinfo.cols.info = number .. ": " .. table.concat(dissect_messages(tree, tvb, length), ", ")
    dissect_tail(tree, tvb, HEADER + length)
    return tvb:captured_len()
end

-- chained reports whether the messages of a plain packet make up its length exactly, as far as the capture has them: what is not ours does that by
-- no accident.
local function chained(tvb)
    local at, last = HEADER, HEADER + tvb(2, 2):uint()
    while at < last do
        if at + MESSAGE_HEADER > tvb:captured_len() then return at > HEADER or last >= HEADER + MESSAGE_HEADER end
        local length = tvb(at + 2, 2):uint()
        if length < MESSAGE_HEADER or at + length > last then return false end
        at = at + length
    end
    return at == last and last > HEADER
end

stillwater:register_heuristic("udp", function(tvb, pinfo, root)
    if not ours(tvb) or not has(tvb(1, 1):uint(), 0x01) and not chained(tvb) then return false end
    stillwater.dissector(tvb, pinfo, root)
    return true
end)
DissectorTable.get("udp.port"):add(PORT, stillwater)
