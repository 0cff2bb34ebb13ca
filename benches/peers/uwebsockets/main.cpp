// uWebSockets as its own examples are, without TLS and compression: each message back, or with MODE=broadcast to all.
//
// The first argument is 127.0.0.1:PORT. Built by tests/long/websocket.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "App.h"

struct Nothing {};

int main(int argc, char **argv) {
    std::string address = argc > 1 ? argv[1] : "127.0.0.1:3000";
    auto colon = address.rfind(':');
    const char *mode = std::getenv("MODE");
    bool broadcasts = mode && std::string(mode) == "broadcast";
    uWS::App app;
    auto *all = &app;
    app.ws<Nothing>("/*", {
        .compression = uWS::DISABLED,
        .maxPayloadLength = 1024 * 1024,
        .idleTimeout = 120,
        .maxBackpressure = 1024 * 1024,
        .open = [broadcasts](auto *ws) { if (broadcasts) ws->subscribe("all"); },
        .message = [broadcasts, all](auto *ws, std::string_view message, uWS::OpCode code) {
            if (broadcasts) {
                all->publish("all", message, code);
            } else {
                ws->send(message, code);
            }
        },
    });
    app.listen(address.substr(0, colon), std::stoi(address.substr(colon + 1)), [&](auto *socket) {
        if (!socket) {
            std::exit(1);
        }
        std::printf("listening on http://%s/\n", address.c_str());
        std::fflush(stdout);
    });
    app.run();
}
