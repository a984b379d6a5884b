{ base, merge, ... }: {
  after = merge base {
    hosts.beta.users = [
      "ann"
      "ben"
    ];
    roles.reader.services = [
      "auth"
      "wiki"
    ];
  };
}
