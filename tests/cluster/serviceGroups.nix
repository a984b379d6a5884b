{
  apps = [
    "auth"
    "outline"
    "wiki"
  ];
  control-plane = [
    "metrics"
    "time"
  ];
  control-plane-write = [ ];
}
