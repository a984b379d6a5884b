{ base, merge, ... }: {
  after = merge base {
    trust.roots = [
      "-----BEGIN CERTIFICATE-----\nQW5vdGhlcg==\n-----END CERTIFICATE-----\n"
    ];
  };
}
