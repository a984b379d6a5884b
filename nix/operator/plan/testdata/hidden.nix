{ base, merge, ... }: {
  before = merge base {
    services.debug = {
      host = "beta";
      port = 99;
      visibility = "host";
    };
  };
  after = merge base {
    services.debug = {
      host = "alpha";
      port = 99;
      visibility = "host";
    };
  };
}
