{
  host = "forge";
  port = 8080;
  listenPort = 80;
}
