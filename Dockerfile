# Two images: `gatewright` (manager, gate and the command line, static) and `decider` (the decider server with llama.cpp).
#
#   docker build --target gatewright -t gatewright:0.1.0 .
#   docker build --target decider -t gatewright-decider:0.1.0 .
#
# The tag is the chart's appVersion, which it asks for by default.
#
# `make image` packs the same two stages without a container engine: hack/tools/image reads them here. They therefore begin
# with scratch and hold plain COPY lines only.

FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=unknown
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=${VERSION}" -o /out/ \
    ./cmd/manager ./cmd/gate ./cmd/gatewright ./cmd/decider

FROM debian:bookworm-slim AS libraries
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates libffi8 libgcc-s1 libstdc++6

FROM node:22-bookworm-slim AS llama
RUN apt-get update && apt-get install -y --no-install-recommends libffi8 libstdc++6
WORKDIR /src
COPY hack/llama hack/llama
RUN hack/llama/fetch.sh library

FROM scratch AS gatewright
COPY --from=libraries /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY LICENSE /LICENSE
COPY --from=build /out/gatewright /usr/local/bin/gatewright
COPY --from=build /out/gate /usr/local/bin/gate
COPY --from=build /out/manager /usr/local/bin/manager
ENV PATH=/usr/local/bin
ARG VERSION=unknown
LABEL org.opencontainers.image.title="Gatewright" \
      org.opencontainers.image.description="Admission control for tool calls of AI agents: manager, gate and command line" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}"
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/gatewright"]

# The decider loads llama.cpp at run time, so it needs the C and C++ libraries of Debian 12, and nothing else of it.
FROM scratch AS decider
COPY --from=libraries /lib64/ld-linux-x86-64.so.2 /lib64/ld-linux-x86-64.so.2
COPY --from=libraries /lib/x86_64-linux-gnu/libc.so.6 /lib/x86_64-linux-gnu/libdl.so.2 \
     /lib/x86_64-linux-gnu/libm.so.6 /lib/x86_64-linux-gnu/libpthread.so.0 /lib/x86_64-linux-gnu/libgcc_s.so.1 \
     /usr/lib/x86_64-linux-gnu/libffi.so.8 /usr/lib/x86_64-linux-gnu/libstdc++.so.6 /lib/x86_64-linux-gnu/
COPY --from=llama /src/.cache/llama /usr/lib/llama
COPY LICENSE /LICENSE
COPY --from=build /out/decider /usr/local/bin/decider
ENV PATH=/usr/local/bin
ARG VERSION=unknown
LABEL org.opencontainers.image.title="Gatewright decider" \
      org.opencontainers.image.description="Decider server of Gatewright with llama.cpp for CPU" \
      org.opencontainers.image.licenses="Apache-2.0 AND MIT" \
      org.opencontainers.image.version="${VERSION}"
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/decider"]
