# Images of the test node itself, packed by hack/tools/image.
FROM scratch AS pause
COPY --from=bin /pause /pause
USER 65532:65532
ENTRYPOINT ["/pause"]

FROM scratch AS coredns
COPY --from=bin /coredns /coredns
USER 65532:65532
ENTRYPOINT ["/coredns"]
