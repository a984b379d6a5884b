{ base, merge, ... }: {
  after = merge base {
    hosts.beta.callers = {
      "service/wiki" = [
        "wiki"
        "backup"
        1007
      ];
      "user/ann" = [ ];
    };
  };
}
