{ base, merge, ... }:
merge base {
  services.wiki = {
    port = null;
    ports = {
      http = 80;
      metrics = {
        port = 9100;
        listenPort = 80;
      };
    };
  };
}
