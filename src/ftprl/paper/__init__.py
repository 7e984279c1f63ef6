"""Every statement of the paper as an experiment that runs, is drawn, and is judged by numbers."""
